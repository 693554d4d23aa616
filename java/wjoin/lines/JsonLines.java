package wjoin.lines;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import java.util.List;
import org.apache.hadoop.io.Text;
import org.apache.spark.sql.catalyst.json.CreateJacksonParser;
import org.apache.spark.sql.catalyst.json.JSONOptionsInRead;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.catalyst.util.FailureSafeParser;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** Lines of JSON: does what Spark's format and its source of lines do, up to the parsing of a line. */
record JsonLines(JSONOptionsInRead options, StructType wanted) implements Lines {
  @Override
  public Option<byte[]> separator() {
    return options.lineSeparatorInRead();
  }

  @Override
  public Rows rows(Iterator<Text> lines, PartitionedFile file) {
    String corrupt = options.columnNameOfCorruptRecord();
    StructType read = without(corrupt, wanted);
    JacksonParser parser =
        new JacksonParser(read, options, true, CollectionConverters.asScala(List.<Filter>of()).toSeq());
    FailureSafeParser<Text> safe =
        new FailureSafeParser<>(
            line -> parser.parse(line, this::tokens, JsonLines::bytes), options.parseMode(), wanted, corrupt);
    return new Rows(lines, new JsonLine(wanted, corrupt, options.zoneId()), safe::parse, wanted);
  }

  private JsonParser tokens(JsonFactory factory, Text line) {
    return options.encoding().isEmpty()
        ? CreateJacksonParser.text(factory, line)
        : CreateJacksonParser.text(options.encoding().get(), factory, line);
  }

  private static UTF8String bytes(Text line) {
    return UTF8String.fromBytes(line.getBytes(), 0, line.getLength());
  }
}
