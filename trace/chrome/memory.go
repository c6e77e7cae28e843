package chrome

import "io"

// Spool stores sorted events until the file is written.
type Spool interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// memorySpool is a Spool in memory, for platforms without files.
type memorySpool struct{ data []byte }

func (m *memorySpool) Write(p []byte) (int, error) {
	m.data = append(m.data, p...)
	return len(p), nil
}

func (m *memorySpool) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memorySpool) Close() error {
	m.data = nil
	return nil
}
