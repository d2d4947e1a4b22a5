package devcluster

import (
	"os"
	"path/filepath"
	"testing"
)

// A mark may be made while the API server writes a line. What follows that line is what came since.
func TestAnAuditMarkWithinALineBeginsAfterIt(t *testing.T) {
	t.Parallel()
	first, second := `{"auditID":"a","verb":"get"}`+"\n", `{"auditID":"b","verb":"list"}`+"\n"
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for mark := 1; mark <= len(first); mark++ {
		log := &auditLog{path: path, mark: AuditMark(mark)}
		for _, text := range []string{first[:mark], first, first + second[:5], first + second} {
			write(text)
			if err := log.more(); err != nil {
				t.Fatalf("mark %d: %v", mark, err)
			}
		}
		if len(log.read) != 1 || log.read[0].ID != "b" || int(log.mark) != len(first+second) {
			t.Errorf("mark %d: read %v, at %d", mark, log.read, log.mark)
		}
	}
}
