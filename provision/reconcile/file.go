package reconcile

// Later is content that is made when it is written.
type Later struct {
	// Content gives it, the same each time.
	Content func() ([]byte, error)
	// Digest is its SHA-256 in hex, Size its length in bytes.
	Digest string
	Size   int64
}

// Digest is the SHA-256 of the file's content, in hex.
func (f File) Digest() string {
	if f.Later != nil {
		return f.Later.Digest
	}
	return ContentDigest(f.Content)
}

// Wanted stands for what is wanted of the file: its Digest, but for one whose
// content is random, of which any is as good as another.
func (f File) Wanted() string {
	if f.Random {
		return "random"
	}
	return f.Digest()
}

// Size is the length of the file's content in bytes.
func (f File) Size() int64 {
	if f.Later != nil {
		return f.Later.Size
	}
	return int64(len(f.Content))
}

// Bytes is the file's content.
func (f File) Bytes() ([]byte, error) {
	if f.Later != nil {
		return f.Later.Content()
	}
	return f.Content, nil
}
