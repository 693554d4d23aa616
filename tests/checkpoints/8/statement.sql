CREATE STREAM orders (id BIGINT, shop STRING, price BIGINT, ts TIMESTAMP)
USING json OPTIONS (path '{folder}/orders', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;
CREATE STREAM visits (id BIGINT, shop STRING, badge BIGINT, ts TIMESTAMP)
USING json OPTIONS (path '{folder}/visits', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;
CREATE STREAM doors (id BIGINT, badge BIGINT, price BIGINT, ts TIMESTAMP)
USING json OPTIONS (path '{folder}/doors', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;
CREATE SINK found USING json OPTIONS (path '{folder}/found');
INSERT INTO found
SELECT O.id AS orders, V.id AS visits, D.id AS doors
FROM orders O, visits V, doors D
WINDOW (O, V) = 10 SECONDS AND WINDOW (V, D) = 8 SECONDS
WHERE O.shop = V.shop AND V.badge = D.badge AND O.price < D.price;
