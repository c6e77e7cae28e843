//go:build !amd64

package engine

func fetchGroup(*Group) {}

func fetchStream(*Group) {}

func fetchConn(*Conn) {}
