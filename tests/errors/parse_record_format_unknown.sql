CREATE SINK s USING kafka OPTIONS (topic 's') FORMAT protobuf
