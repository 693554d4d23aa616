ALTER SINK tracked SET OPTIONS (path 'out')
