//go:build race

package redisbox

const raceDetector = true
