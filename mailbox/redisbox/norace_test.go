//go:build !race

package redisbox

const raceDetector = false
