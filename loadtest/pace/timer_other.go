//go:build !linux

package pace

import "errors"

func newPreciseTimer(Clock) (Timer, error) {
	return nil, errors.New("this system has no timerfd")
}
