ALTER STREAM camera1 SET STATISTICS (
  rate = 1000,
  selectivty = 0.1
)
