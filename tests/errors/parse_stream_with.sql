CREATE STREAM orders (id INT KEY, total DOUBLE) WITH (kafka_topic = 'orders', value_format = 'JSON')
