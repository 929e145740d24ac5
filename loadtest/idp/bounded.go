package idp

import "sync"

// bounded is a map that holds at most a fixed number of entries: one more and
// the entry that was used least recently is forgotten. It is safe for
// concurrent use.
type bounded[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	items map[K]*entry[K, V]
	// ring.next is the entry used last, ring.prev the one used least recently.
	ring entry[K, V]
}

type entry[K comparable, V any] struct {
	key        K
	value      V
	next, prev *entry[K, V]
}

func newBounded[K comparable, V any](limit int) *bounded[K, V] {
	b := &bounded[K, V]{limit: limit, items: make(map[K]*entry[K, V])}
	b.ring.next, b.ring.prev = &b.ring, &b.ring
	return b
}

func (e *entry[K, V]) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}

func (b *bounded[K, V]) pushFront(e *entry[K, V]) {
	e.prev, e.next = &b.ring, b.ring.next
	e.prev.next, e.next.prev = e, e
}

// put stores value under key.
func (b *bounded[K, V]) put(key K, value V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.items[key]; ok {
		e.value = value
		e.unlink()
		b.pushFront(e)
		return
	}
	b.insert(key, value)
}

// add stores value under key unless there is one already.
func (b *bounded[K, V]) add(key K, value V) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.items[key]; ok {
		return false
	}
	b.insert(key, value)
	return true
}

// insert stores a new key; the lock is held.
func (b *bounded[K, V]) insert(key K, value V) {
	var e *entry[K, V]
	if len(b.items) >= b.limit {
		e = b.ring.prev
		e.unlink()
		delete(b.items, e.key)
	} else {
		e = new(entry[K, V])
	}
	e.key, e.value = key, value
	b.items[key] = e
	b.pushFront(e)
}

// get finds a value and counts as a use of it.
func (b *bounded[K, V]) get(key K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.items[key]
	if !ok {
		var none V
		return none, false
	}
	e.unlink()
	b.pushFront(e)
	return e.value, true
}

// take finds a value and removes it, so that only one caller gets it.
func (b *bounded[K, V]) take(key K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.items[key]
	if !ok {
		var none V
		return none, false
	}
	e.unlink()
	delete(b.items, key)
	return e.value, true
}

// filter gives the values that keep wants, which doesn't count as a use.
func (b *bounded[K, V]) filter(keep func(K, V) bool) []V {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []V
	for key, e := range b.items {
		if keep(key, e.value) {
			out = append(out, e.value)
		}
	}
	return out
}

// size is the number of entries.
func (b *bounded[K, V]) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}
