-- Packets of two routers with the same destination within 10 seconds. Each router's packets stay where they arise.
CREATE STREAM router1 AT SITE 'grpc://127.0.0.1:7771' OPTIONS (bandwidth '1000000', latency '0.005')
  WATERMARK at DELAY OF INTERVAL 1 SECOND;
CREATE STREAM router2 AT SITE 'grpc://127.0.0.1:7772' OPTIONS (bandwidth '1000000', latency '0.005')
  WATERMARK at DELAY OF INTERVAL 1 SECOND;
CREATE SINK seen_twice USING parquet OPTIONS (path 'seen_twice');
INSERT INTO seen_twice
SELECT A.destination, A.at AS at_1, B.at AS at_2, A.packet AS packet_1, B.packet AS packet_2
FROM router1 A, router2 B
WINDOW (A, B) = 10 SECONDS
WHERE A.destination = B.destination;
