package placement_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/placement"
)

// serve answers node lists over HTTP: for what a healthy API server can't be made to do on demand.
func serve(t *testing.T, answer func(limit, token string) (int, any)) corev1client.NodeInterface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, body := answer(r.URL.Query().Get("limit"), r.URL.Query().Get("continue"))
		if status, ok := body.(metav1.Status); ok {
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			body = status
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client.CoreV1().Nodes()
}

func page(token string, nodes ...string) *corev1.NodeList {
	list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{Continue: token}}
	for _, name := range nodes {
		list.Items = append(list.Items, node(name))
	}
	return list
}

func TestNodesReadsAgainWhenTheListHasExpired(t *testing.T) {
	var asked []string
	client := serve(t, func(limit, token string) (int, any) {
		asked = append(asked, limit+" "+token)
		switch {
		case token != "":
			status := apierrors.NewResourceExpired("The provided continue parameter is too old")
			return http.StatusGone, status.ErrStatus
		case limit != "":
			return http.StatusOK, page("second", "a", "b")
		default:
			return http.StatusOK, page("", "a", "b", "c")
		}
	})
	nodes, err := placement.Nodes(t.Context(), client)
	if err != nil || !slices.Equal(names(nodes), []string{"a", "b", "c"}) {
		t.Fatalf("got %v, %v", names(nodes), err)
	}
	if want := []string{"500 ", "500 second", " "}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestNodesReturnsTheServersError(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no"))
	for name, answer := range map[string]func(limit, token string) (int, any){
		"first page": func(string, string) (int, any) { return http.StatusForbidden, forbidden.ErrStatus },
		"second page": func(_, token string) (int, any) {
			if token == "" {
				return http.StatusOK, page("second", "a")
			}
			return http.StatusForbidden, forbidden.ErrStatus
		},
	} {
		nodes, err := placement.Nodes(t.Context(), serve(t, answer))
		if !apierrors.IsForbidden(err) || nodes != nil || !strings.HasPrefix(fmt.Sprint(err), "read the cluster's nodes: ") {
			t.Errorf("%s: got %v, %v", name, names(nodes), err)
		}
	}
}

func TestNodesStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, func(string, string) (int, any) {
		cancel()
		return http.StatusOK, page("more", "a")
	})
	if _, err := placement.Nodes(ctx, client); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
