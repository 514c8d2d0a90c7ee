// Package orders reads orders from the shop's database.
package orders

import (
	"context"
	"database/sql"
)

// Order is what the list shows.
type Order struct {
	ID       int64
	Customer string
	Items    int
}

// Store reads orders.
type Store struct {
	db *sql.DB
}

// Recent returns the latest orders, newest first.
func (s *Store) Recent(ctx context.Context, limit int) ([]Order, error) {
	rows, err := s.db.QueryContext(ctx, `
		SELECT o.id, c.name, COUNT(i.id)
		FROM orders o
		JOIN customers c ON c.id = o.customer_id
		LEFT JOIN items i ON i.order_id = o.id
		GROUP BY o.id, c.name
		ORDER BY o.created_at DESC
		LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var orders []Order
	for rows.Next() {
		var order Order
		if err := rows.Scan(&order.ID, &order.Customer, &order.Items); err != nil {
			return nil, err
		}
		orders = append(orders, order)
	}
	return orders, rows.Err()
}
