SELECT A.* EXCEPT (name, ts) FROM collated A, camera2 B WINDOW = 5 s
