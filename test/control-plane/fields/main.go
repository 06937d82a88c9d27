// Command fields prints what the OpenAPI schema of the built-in kinds does not tell: which fields the server's own
// types hold by pointer (an explicit zero is kept), which are left out when zero, and which are always written.
// schema.ts joins it with the OpenAPI documents.
package main

import (
	"encoding/json"
	"os"
	"reflect"
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

func visit(t reflect.Type, out map[string]map[string]string) {
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
	fields := map[string]string{}
	out[name] = fields
	add(t, fields, out)
}

func add(t reflect.Type, fields map[string]string, out map[string]map[string]string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" && f.Anonymous {
			add(f.Type, fields, out)
			continue
		}
		if name == "" {
			continue
		}
		fields[name] = zeroRule(f, options)
		visit(f.Type, out)
	}
}

func main() {
	out := map[string]map[string]string{}
	for _, root := range roots {
		visit(reflect.TypeOf(root), out)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
