-- Departures of 2013 on Kafka, a topic for each airport of New York: planes that left all three within 24 hours.
-- Flights that were cancelled have no time of departure: their rows are dropped and counted (WJ804 tells how many).
-- `make demo-kafka` starts a broker, writes the topics, and runs this script; with a broker of your own:
--   wjoin run examples/kafka/flights.sql --once --checkpoint out/checkpoints --set spark.jars.packages=…
-- (docs/kafka.md says which packages).
SET TIME ZONE 'America/New_York';

CREATE OR REPLACE STREAM ewr (departed TIMESTAMP, tailnum STRING, carrier STRING, flight BIGINT, dest STRING)
USING kafka OPTIONS (kafka.bootstrap.servers 'localhost:9092', subscribe 'ewr')
FORMAT JSON
WATERMARK departed DELAY OF INTERVAL 1 DAY;

CREATE OR REPLACE STREAM jfk (departed TIMESTAMP, tailnum STRING, carrier STRING, flight BIGINT, dest STRING)
USING kafka OPTIONS (kafka.bootstrap.servers 'localhost:9092', subscribe 'jfk')
FORMAT JSON
WATERMARK departed DELAY OF INTERVAL 1 DAY;

CREATE OR REPLACE STREAM lga (departed TIMESTAMP, tailnum STRING, carrier STRING, flight BIGINT, dest STRING)
USING kafka OPTIONS (kafka.bootstrap.servers 'localhost:9092', subscribe 'lga')
FORMAT JSON
WATERMARK departed DELAY OF INTERVAL 1 DAY;

CREATE OR REPLACE SINK planes
USING kafka OPTIONS (kafka.bootstrap.servers 'localhost:9092', topic 'planes')
FORMAT JSON KEY (tailnum);

INSERT INTO planes
SELECT E.tailnum, E.departed AS left_ewr, J.departed AS left_jfk, L.departed AS left_lga
FROM ewr AS E, jfk AS J, lga AS L
WINDOW = 24 HOURS
WHERE E.tailnum = J.tailnum AND J.tailnum = L.tailnum;
