package provision

import (
	"bytes"
	"testing"
	"time"
)

// TestSavedPlanOverTLS: a key that is another one each time does not make a
// saved plan stale.
func TestSavedPlanOverTLS(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		_, open := overTLS(r)
		defer time.Sleep(closeTime)
		saved, err := open().SavePlan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := saved.JSON(); err != nil || bytes.Contains(text, []byte("PRIVATE")) {
			t.Errorf("a saved plan holds a key (%v)", err)
		}
		if err := open().ProvisionSaved(t.Context(), saved); err != nil {
			t.Error(err)
		}
	})
}
