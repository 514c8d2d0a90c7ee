-- The tables the reports are made of.

CREATE TABLE customers (
    id BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    country CHAR(2) NOT NULL
);

CREATE TABLE orders (
    id BIGINT PRIMARY KEY,
    customer_id BIGINT NOT NULL REFERENCES customers (id),
    placed_on DATE NOT NULL
);

CREATE INDEX orders_by_customer ON orders (customer_id);

CREATE TABLE payments (
    id BIGINT PRIMARY KEY,
    order_id BIGINT NOT NULL REFERENCES orders (id),
    cents BIGINT NOT NULL
);

CREATE INDEX payments_by_order ON payments (order_id);
