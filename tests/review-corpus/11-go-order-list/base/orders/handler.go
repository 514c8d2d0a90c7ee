package orders

import (
	"encoding/json"
	"net/http"
	"strconv"
)

const mostOrders = 200

// List answers GET /orders?limit=20.
func (s *Store) List(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > mostOrders {
		http.Error(w, "limit has to be between 1 and 200", http.StatusBadRequest)
		return
	}
	orders, err := s.Recent(r.Context(), limit)
	if err != nil {
		http.Error(w, "orders can't be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(orders); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
