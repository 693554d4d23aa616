-- Departures of 2013, a stream for each airport. A flight's row comes when the flight was due to leave, but its
-- event time is when it left: 43 minutes early to 1,301 minutes late. So rows are out of order by less than a day.
-- A flight that was cancelled never left: its row has no event time, is dropped and counted (WJ804 tells how many).
SET TIME ZONE 'America/New_York';

CREATE OR REPLACE STREAM ewr (
  departed TIMESTAMP, scheduled TIMESTAMP, tailnum STRING, carrier STRING, flight BIGINT, dest STRING
) USING parquet OPTIONS (path '${streams}/ewr', maxFilesPerTrigger '1')
WATERMARK departed DELAY OF INTERVAL 1 DAY;

CREATE OR REPLACE STREAM jfk (
  departed TIMESTAMP, scheduled TIMESTAMP, tailnum STRING, carrier STRING, flight BIGINT, dest STRING
) USING parquet OPTIONS (path '${streams}/jfk', maxFilesPerTrigger '1')
WATERMARK departed DELAY OF INTERVAL 1 DAY;

CREATE OR REPLACE STREAM lga (
  departed TIMESTAMP, scheduled TIMESTAMP, tailnum STRING, carrier STRING, flight BIGINT, dest STRING
) USING parquet OPTIONS (path '${streams}/lga', maxFilesPerTrigger '1')
WATERMARK departed DELAY OF INTERVAL 1 DAY;

-- Hourly weather at the same airports. These rows come in order: without a WATERMARK clause the delay is 0.
CREATE OR REPLACE STREAM ewr_weather (observed TIMESTAMP, temp DOUBLE, wind_speed DOUBLE)
USING parquet OPTIONS (path '${streams}/ewr_weather', maxFilesPerTrigger '1');

CREATE OR REPLACE STREAM jfk_weather (observed TIMESTAMP, temp DOUBLE, wind_speed DOUBLE)
USING parquet OPTIONS (path '${streams}/jfk_weather', maxFilesPerTrigger '1');

CREATE OR REPLACE STREAM lga_weather (observed TIMESTAMP, temp DOUBLE, wind_speed DOUBLE)
USING parquet OPTIONS (path '${streams}/lga_weather', maxFilesPerTrigger '1');
