ANALYZE STREAM camera1, camera2
