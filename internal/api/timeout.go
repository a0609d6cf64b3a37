package api

import (
	"context"
	"time"
)

// within bounds ctx by the timeout of a request; none when it is not positive.
func within(ctx context.Context, timeoutMs int32) (context.Context, context.CancelFunc) {
	if timeoutMs <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(timeoutMs)*time.Millisecond)
}
