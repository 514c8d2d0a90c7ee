-- 0006: shipments

CREATE TABLE shipments (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    sent_at TIMESTAMPTZ
);

CREATE INDEX CONCURRENTLY shipments_by_order ON shipments (order_id);
