-- Temperatures at the three airports, within an hour of each other, that differ by 15 °F or more (no join key)
CREATE OR REPLACE SINK weather USING parquet OPTIONS (path '${results}/weather');

INSERT INTO weather
SELECT E.observed AS at_ewr, E.temp AS temp_ewr, J.observed AS at_jfk, J.temp AS temp_jfk,
  L.observed AS at_lga, L.temp AS temp_lga
FROM ewr_weather AS E, jfk_weather AS J, lga_weather AS L
WINDOW = 1 HOUR
WHERE greatest(E.temp, J.temp, L.temp) - least(E.temp, J.temp, L.temp) >= 15;
