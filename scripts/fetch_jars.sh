#!/bin/sh
# Print a folder with jars of Maven's and all that they need at run time, beyond what every Spark has:
#   scripts/fetch_jars.sh GROUP:NAME:VERSION …
# Fetched once by Maven, into the user's cache. Tests run on them.
set -eu

folder="${XDG_CACHE_HOME:-$HOME/.cache}/wjoin/jars/$(echo "$*" | tr ' :' '+_')"
if [ -d "$folder" ]; then
    echo "$folder"
    exit 0
fi

"$(dirname "$0")/find_maven.sh" "The tests of Spark's packages fetch these"

# What every Spark has of its own.
sparks="org.scala-lang,org.scala-lang.modules,org.slf4j,org.apache.logging.log4j,org.apache.hadoop,org.apache.parquet"
sparks="$sparks,com.fasterxml.jackson.core,com.fasterxml.jackson.datatype,com.github.luben,com.google.code.findbugs"
sparks="$sparks,commons-logging,io.airlift,javax.annotation,org.lz4,org.roaringbitmap,org.xerial.snappy"

echo "Fetching $* (once)" >&2
mkdir -p "$(dirname "$folder")"
made=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT
{
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>wjoin</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>'
    echo '<dependencies>'
    for coordinate in "$@"; do
        IFS=: read -r group name version <<END
$coordinate
END
        echo "<dependency><groupId>$group</groupId><artifactId>$name</artifactId><version>$version</version></dependency>"
    done
    echo '</dependencies></project>'
} >"$made/pom.xml"
mvn --quiet --batch-mode --file "$made/pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime "-DoutputDirectory=$made/jars" "-DexcludeGroupIds=$sparks" >&2 </dev/null
chmod 755 "$made/jars"
# Another process may have been faster.
[ -d "$folder" ] || mv "$made/jars" "$folder"
echo "$folder"
