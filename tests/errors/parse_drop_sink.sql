DROP SINK tracked
