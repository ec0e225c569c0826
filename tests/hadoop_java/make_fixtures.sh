#!/usr/bin/env bash
# Makes the archives in tests/fixtures/hadoop and tests/fixtures/nutch_crawl again, with Java and Maven:
# ./tests/hadoop_java/make_fixtures.sh
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
../../.ci/tools nutch
jars=../../build/tools/nutch

run() {  # version of Nutch, class, arguments
  version=$1
  shift
  java -Xmx300m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$out/$version:$jars/nutch-$version.jar:$jars/lib/*" "$@"
}

dump() {  # version of Nutch, files
  version=$1
  shift
  for file in "$@"; do run "$version" Dump "$out/files/$file" > "$out/files/${file%.seq}.json"; done
}

for version in 1.3 1.15 1.22; do
  mkdir -p "$out/$version"
  sources="Dump.java Values.java"
  [ "$version" = 1.3 ] && sources="$sources OldValues.java" || sources="$sources Hosts.java"
  [ "$version" = 1.22 ] && sources="$sources Crawl.java OpicScoring.java"
  javac -nowarn -cp "$jars/nutch-$version.jar:$jars/lib/*" -d "$out/$version" $sources
  run "$version" Values "$out/files/$version"
  dump "$version" "$version"/{linkdb,content,parse_data,parse_text}
  [ "$version" = 1.3 ] || { run "$version" Hosts "$out/files/$version"; dump "$version" "$version/hostdb"; }
done
run 1.3 OldValues "$out/files/old"
run 1.22 Values "$out/files/codecs" codecs
dump 1.22 codecs/none.seq
find "$out/files" -name '.*.crc' -delete
run 1.22 Crawl "$out/crawl"
find "$out/crawl" -name '.*.crc' -delete
rm -r "$out"/crawl/tmp "$out"/crawl/plugins "$out"/crawl/crawldb/old

pack() {  # folder, archive
  mkdir -p "$(dirname "$2")"
  tar --sort=name --owner=0 --group=0 --mtime=2026-11-29 -C "$1" -cJf "$2" .
  ls -l "$2"
}
pack "$out/files" ../fixtures/hadoop/values.tar.xz
pack "$out/crawl" ../fixtures/nutch_crawl/crawl.tar.xz
