SELECT e.observed AS at_ewr, e.temp AS temp_ewr, j.observed AS at_jfk, j.temp AS temp_jfk,
  l.observed AS at_lga, l.temp AS temp_lga
FROM ewr_weather AS e
JOIN jfk_weather AS j ON j.minute BETWEEN e.minute - 60 AND e.minute + 60
JOIN lga_weather AS l ON l.minute BETWEEN e.minute - 60 AND e.minute + 60
WHERE abs(l.minute - j.minute) <= 60
  AND (abs(e.temp - j.temp) >= 15 OR abs(e.temp - l.temp) >= 15 OR abs(j.temp - l.temp) >= 15)
