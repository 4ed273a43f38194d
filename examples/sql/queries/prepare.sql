DROP TABLE IF EXISTS orders;
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL);
INSERT INTO orders (customer, cents) VALUES ('ada', 120), ('bob', 40), ('ada', 45), ('cyd; DROP TABLE orders', 200);
