//go:build js && wasm

// Command wasm is the simulator as the web page's worker runs it: it puts an object
// simccl with the functions call, cancel and put on the global object. All work is
// that of package webapi.
package main

import (
	"context"
	"encoding/json"
	"sync"
	"syscall/js"
	"time"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/app/web"
)

// version is set when it is linked.
var version = "v0.1.0-dev"

func main() {
	process.LateCollection()
	w := &worker{service: web.New(version), calls: map[int]context.CancelFunc{}, events: newEvents()}
	js.Global().Set("simccl",
		js.ValueOf(map[string]any{"call": js.FuncOf(w.call), "cancel": js.FuncOf(w.cancel),
			"put": js.FuncOf(w.put)}))
	js.Global().Call("simcclReady")
	select {}
}

// worker has the calls that have not ended.
type worker struct {
	service *web.Service
	events  *events
	mu      sync.Mutex
	calls   map[int]context.CancelFunc
}

// call is simccl.call(id, method, query, emit, done): emit gets parts as JSON, done the
// answer as JSON or as {name, type, data}, and a failure as JSON.
func (w *worker) call(_ js.Value, args []js.Value) any {
	id, method, query, emit, done := args[0].Int(), args[1].String(), args[2].String(), args[3], args[4]
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	w.calls[id] = cancel
	w.mu.Unlock()
	go func() {
		defer cancel()
		out, err := w.service.Call(&yielding{Context: ctx, events: w.events, last: time.Now()}, method,
			[]byte(query), func(part any) {
				if text, err := json.Marshal(part); err == nil {
					emit.Invoke(string(text))
				}
			})
		w.mu.Lock()
		delete(w.calls, id)
		w.mu.Unlock()
		answer(done, out, err)
	}()
	return nil
}

func answer(done js.Value, out any, err error) {
	if file, ok := out.(*web.File); ok && err == nil {
		data := js.Global().Get("Uint8Array").New(len(file.Data))
		js.CopyBytesToJS(data, file.Data)
		done.Invoke(js.ValueOf(map[string]any{"name": file.Name, "type": file.Type, "data": data}), js.Null())
		return
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(out)
	}
	if err != nil {
		text, _ = json.Marshal(web.Failed(err))
		done.Invoke(js.Null(), string(text))
		return
	}
	done.Invoke(string(text), js.Null())
}

// cancel is simccl.cancel(id).
func (w *worker) cancel(_ js.Value, args []js.Value) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.calls[args[0].Int()]; stop != nil {
		stop()
	}
	return nil
}

// put is simccl.put(name, bytes); it returns what is wrong, or null.
func (w *worker) put(_ js.Value, args []js.Value) any {
	data := make([]byte, args[1].Get("length").Int())
	js.CopyBytesToGo(data, args[1])
	if err := w.service.Put(args[0].String(), data); err != nil {
		return err.Error()
	}
	return js.Null()
}

// events lets the events of the worker in that wait: a message to itself arrives after them.
// Sleep would not: a timer that is due when the scheduler looks needs no turn of the loop.
type events struct {
	port    js.Value
	arrived chan struct{}
}

func newEvents() *events {
	channel := js.Global().Get("MessageChannel").New()
	e := &events{channel.Get("port2"), make(chan struct{})}
	channel.Get("port1").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
		e.arrived <- struct{}{} // one goroutine waits for each message
		return nil
	}))
	return e
}

func (e *events) letIn() {
	e.port.Call("postMessage", js.Null())
	<-e.arrived
}

// yielding is a context that lets events in when it is polled: a worker has one thread,
// and a cancel is an event.
type yielding struct {
	context.Context
	events *events
	last   time.Time
}

// between is how long a worker may be deaf. Where others want the processor, each turn of
// the loop waits for it anew.
const between = 50 * time.Millisecond

func (y *yielding) Err() error {
	if now := time.Now(); now.Sub(y.last) > between {
		y.events.letIn()
		y.last = time.Now()
	}
	return y.Context.Err()
}
