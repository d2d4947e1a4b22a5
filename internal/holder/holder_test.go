package holder_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"jr2.dev/jr2/internal/holder"
)

func TestThisProcessIsNotGone(t *testing.T) {
	if self := holder.Self(); holder.Gone(self) {
		t.Errorf("%q is said to be gone", self)
	}
}

// TestEndedProcessIsGone takes the id of a process that has run, and an id whose process began at another time.
func TestEndedProcessIsGone(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	self := holder.Self()
	pid := regexp.MustCompile(`process \d+`)
	if other := pid.ReplaceAllString(self, "process "+strconv.Itoa(ended.Process.Pid)); !holder.Gone(other) {
		t.Errorf("%q is not said to be gone", other)
	}
	began := regexp.MustCompile(`:\d+\)$`)
	if younger := began.ReplaceAllString(self, ":1)"); !holder.Gone(younger) {
		t.Errorf("%q is not said to be gone", younger)
	}
}

func TestStrangersAreNeverGone(t *testing.T) {
	for _, stranger := range []string{"", "ana@laptop", "ana@laptop, process 999999", "ana@laptop, process 999999 (0123456789ab:7)", "process x (y:z)"} {
		if holder.Gone(stranger) {
			t.Errorf("%q is said to be gone", stranger)
		}
	}
}
