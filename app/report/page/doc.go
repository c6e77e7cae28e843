// Package page writes a run as one HTML file that needs nothing else: no
// network, no script. It draws with SVG in light and dark, fits a phone, and
// equal input gives equal bytes. Every drawn element shows its numbers when the
// pointer rests on it; the tables below say the same in words.
package page
