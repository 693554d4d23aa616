ALTER STREAM camera1 SET (rate = 1)
