package sqlite

import (
	"context"
	"database/sql/driver"
)

// connector opens connections of our private driver.
type connector struct{ dsn string }

// Connect opens a connection.
func (c connector) Connect(context.Context) (driver.Conn, error) { return privateDriver.Open(c.dsn) }

// Driver returns the driver.
func (c connector) Driver() driver.Driver { return &privateDriver }
