// Command fields prints what the OpenAPI schema of the built-in kinds does not tell: which fields the server's own
// types hold by pointer (an explicit zero is kept), which are left out when zero, which are always written, and their
// numbers in protobuf. schema.ts joins it with the OpenAPI documents.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	apps "k8s.io/api/apps/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// keep: an explicit zero stays; omit: a zero is dropped; emit: written even when zero (as "" 0 false {} or null).
var roots = []any{
	apps.Deployment{}, core.Secret{}, core.ConfigMap{}, core.Namespace{},
	coordination.Lease{}, events.Event{}, apiextensions.CustomResourceDefinition{},
}

func nameOf(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	parts[0] = strings.Join(host, ".")
	return strings.Join(parts, ".") + "." + t.Name()
}

func zeroRule(f reflect.StructField, options string) string {
	empty := strings.Contains(options, "omitempty")
	if strings.Contains(options, "omitzero") {
		return "omit"
	}
	switch f.Type.Kind() {
	case reflect.Pointer:
		if empty {
			return "keep"
		}
		return "null"
	case reflect.Struct:
		if _, custom := reflect.New(f.Type).Interface().(json.Marshaler); custom {
			return "null"
		}
		return "emit"
	case reflect.Slice, reflect.Map, reflect.Interface:
		if empty {
			return "omit"
		}
		return "null"
	default:
		if empty {
			return "omit"
		}
		return "emit"
	}
}

// facts of one type. Numbers lead to a field's name, or to the numbers of a message whose fields stand in JSON beside
// the others.
type facts struct {
	Zero    map[string]string `json:"zero"`
	Numbers map[int]any       `json:"numbers"`
}

func visit(t reflect.Type, out map[string]facts) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		visit(t.Elem(), out)
		return
	case reflect.Struct:
	default:
		return
	}
	if _, custom := reflect.New(t).Interface().(json.Marshaler); custom {
		return
	}
	name := nameOf(t)
	if _, seen := out[name]; seen {
		return
	}
	known := facts{Zero: map[string]string{}, Numbers: map[int]any{}}
	out[name] = known
	add(t, known, out)
}

func add(t reflect.Type, known facts, out map[string]facts) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" && f.Anonymous {
			inner := facts{Zero: known.Zero, Numbers: map[int]any{}}
			add(f.Type, inner, out)
			if number := numberOf(f); number > 0 {
				known.Numbers[number] = inner.Numbers
			}
			continue
		}
		if name == "" {
			continue
		}
		known.Zero[name] = zeroRule(f, options)
		if number := numberOf(f); number > 0 {
			known.Numbers[number] = name
		}
		visit(f.Type, out)
	}
}

// numberOf reads the field's number from a tag such as `protobuf:"bytes,2,opt,name=spec"`; 0 when it has none.
func numberOf(f reflect.StructField) int {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		panic(err)
	}
	return number
}

func main() {
	out := map[string]facts{}
	for _, root := range roots {
		visit(reflect.TypeOf(root), out)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
