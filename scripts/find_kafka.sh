#!/bin/sh
# Print a folder with the jars of a Kafka broker (broker/) and of Spark's packages for Kafka and Avro (connector/);
# fetch them by Maven where they are not there yet, unless --cached is given. Tests and the demo run on them.
set -eu

kafka=4.1.1
# The version of Spark's packages: those of 4.2.0 run on Spark 4.3.0 as well.
spark="${KAFKA_SPARK_VERSION:-4.2.0}"

here=$(cd "$(dirname "$0")" && pwd)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/wjoin/kafka-$kafka-spark-$spark"
if [ -d "$folder" ]; then
    echo "$folder"
    exit 0
fi
[ "${1:-}" != --cached ] || exit 1

"$here/find_maven.sh" "The tests and the demo of Kafka fetch a broker"

fetch() { # the dependencies of scripts/kafka/$1.xml into $2
    # Not into ~/.m2: what lies there by halves, such as a jar's description without it, Spark's Ivy stumbles over.
    mvn --quiet --batch-mode "-Dmaven.repo.local=$repository" --file "$here/kafka/$1.xml" "-Dkafka.version=$kafka" "-Dspark.version=$spark" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DincludeScope=runtime "-DoutputDirectory=$2" >&2 </dev/null
}

echo "Fetching Kafka $kafka and Spark's packages $spark for it (once, 60 MB)" >&2
mkdir -p "$(dirname "$folder")"
made=$(mktemp -d "$folder.XXXXXX")
repository=$(mktemp -d)
trap 'rm -rf "$made" "$repository"' EXIT
fetch broker "$made/broker"
fetch connector "$made/connector"
# Another process may have been faster.
[ -d "$folder" ] || mv "$made" "$folder"
echo "$folder"
