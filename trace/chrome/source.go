package chrome

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/simccl/simccl/internal/envelope"
	"github.com/simccl/simccl/trace"
)

// GzipError reports a fault of a compressed file.
type GzipError struct {
	Offset  int64 // in the compressed file
	Text    int64 // bytes of text before it
	Problem string
}

// Error prints both places and the problem.
func (e *GzipError) Error() string {
	return fmt.Sprintf("byte %d of the compressed file, after %d bytes of text: %s", e.Offset, e.Text,
		e.Problem)
}

// source reads the text of a file, compressed or not, and tracks the position in both.
type source struct {
	in   *bufio.Reader // the file
	from *counting     // counts the bytes read from the file
	zip  *gzip.Reader  // nil: not gzip
	zst  io.Reader     // nil: not zstd
	text int64
	err  error // the error that ended reading; it is returned again
}

type counting struct {
	r   io.Reader
	n   int64
	err error // an error other than io.EOF
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.n += int64(n); err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

func newSource(r io.Reader) (*source, error) {
	s := &source{from: &counting{r: r}}
	s.in = bufio.NewReaderSize(s.from, 1<<16)
	magic, _ := s.in.Peek(4)
	switch envelope.Packed(magic) {
	case "zstd":
		z, err := envelope.Unpacker("zstd", s.in)
		if err != nil {
			return s, s.fault(err)
		}
		s.zst = z
	case "gzip":
		z, err := gzip.NewReader(s.in)
		if err != nil {
			return s, s.fault(err)
		}
		z.Multistream(false) // without multistream the end of a member shows where junk begins
		s.zip = z
	}
	return s, nil
}

// offset returns the number of bytes of the file that were used.
func (s *source) offset() int64 { return s.from.n - int64(s.in.Buffered()) }

// fault adds the position to an error of the decompressor.
func (s *source) fault(err error) error {
	var corrupt flate.CorruptInputError
	problem := ""
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		problem = fmt.Sprintf("the file is cut there; copy it again, or decompress what there is (%s -dc) "+
			"to read it", s.by())
	case errors.Is(err, gzip.ErrChecksum):
		problem = "checksum or length at the end is not that of the text: the file was changed, or is two " +
			"mixed up"
	case errors.Is(err, gzip.ErrHeader):
		problem = "no header of gzip"
	case errors.As(err, &corrupt):
		problem = "the compressed data is corrupt"
	case s.zst != nil && s.from.err == nil:
		problem = "the data compressed by zstd is corrupt: " + err.Error()
	default: // the file itself could not be read
		return fmt.Errorf("read trace: %w", err)
	}
	return &GzipError{s.offset(), s.text, problem}
}

// by returns the name of the compression.
func (s *source) by() string {
	if s.zst != nil {
		return "zstd"
	}
	return "gzip"
}

func (s *source) compressed() bool { return s.zip != nil || s.zst != nil }

func (s *source) Read(p []byte) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err = s.bounded(p)
	s.err = err
	return n, err
}

func (s *source) bounded(p []byte) (int, error) {
	n, err := s.read(p)
	switch {
	case s.text > maxText:
		return 0, &trace.LimitError{Problem: fmt.Sprintf("more than %d GiB of text", maxText>>30),
			Hint: "write a smaller trace (--trace-detail, --trace-ranks)"}
	case s.compressed() && s.text > freeText && s.text/maxRatio > s.from.n:
		return 0,
			&trace.LimitError{
				Problem: fmt.Sprintf("more than %d MiB of text come out of %d compressed bytes: no trace "+
					"is so uniform", freeText>>20, s.from.n),
				Hint: "decompress it to read it all the same"}
	}
	return n, err
}

func (s *source) read(p []byte) (int, error) {
	if s.zst != nil {
		n, err := s.zst.Read(p)
		if s.text += int64(n); err != nil && err != io.EOF {
			err = s.fault(err)
		}
		return n, err
	}
	if s.zip == nil {
		n, err := s.in.Read(p)
		s.text += int64(n)
		return n, err
	}
	for {
		n, err := s.zip.Read(p)
		s.text += int64(n)
		switch {
		case err == io.EOF && n > 0:
			return n, nil // the next call returns the error
		case err == io.EOF:
			if err := s.member(); err != nil {
				return 0, err
			}
			continue
		case err != nil:
			return n, s.fault(err)
		}
		return n, nil
	}
}

// member starts the next of several compressed members, as gzip and cat produce them. Zeros at the end of a
// file are skipped (tapes have them).
func (s *source) member() error {
	for {
		next, err := s.in.Peek(1)
		if err != nil {
			return io.EOF
		}
		if next[0] != 0 {
			break
		}
		_, _ = s.in.Discard(1)
	}
	if next, _ := s.in.Peek(2); envelope.Packed(next) != "gzip" {
		return &GzipError{s.offset(), s.text,
			"what follows the compressed data is no gzip; cut the file there"}
	}
	if err := s.zip.Reset(s.in); err != nil {
		return s.fault(err)
	}
	s.zip.Multistream(false)
	return nil
}
