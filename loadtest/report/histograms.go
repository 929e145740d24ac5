package report

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// histSchema names the shape of <run>.hdr.gz: gzipped JSON, HDR histograms in
// the V2 compressed encoding (base64, nanoseconds) by "<operation>/<figure>".
const histSchema = "benchctl.hdr/1"

// maxFile bounds how much of one file is read, unpacked, so that a wrong or
// hostile file can't fill the memory. The largest real ones have a few MB.
const maxFile = 256 << 20

type histFile struct {
	Schema     string            `json:"schema"`
	Histograms map[string]string `json:"histograms"`
}

func writeHistograms(w io.Writer, h map[string][]byte) error {
	f := histFile{Schema: histSchema, Histograms: map[string]string{}}
	for name, encoded := range h {
		f.Histograms[name] = string(encoded)
	}
	z := gzip.NewWriter(w)
	if err := json.NewEncoder(z).Encode(f); err != nil {
		return err
	}
	return z.Close()
}

// readHistograms reads what writeHistograms wrote.
func readHistograms(r io.Reader) (map[string][]byte, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("histograms: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("histograms: %w", err)
	}
	if len(text) > maxFile {
		return nil, errors.New("histograms: larger than any that benchctl writes")
	}
	var f histFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("histograms:%w", where(text, err))
	}
	if f.Schema != histSchema {
		return nil, fmt.Errorf("histograms: %w", otherSchema(f.Schema, histSchema))
	}
	h := make(map[string][]byte, len(f.Histograms))
	for name, encoded := range f.Histograms {
		h[name] = []byte(encoded)
	}
	return h, nil
}
