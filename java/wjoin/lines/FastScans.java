package wjoin.lines;

import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat;
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat;
import org.apache.spark.sql.internal.LegacyBehaviorPolicy;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/** Scans of text files as scans that give columns, and leave to Spark's parser only lines that are not simple. */
public final class FastScans {
  /** Options by which files are chosen, in small letters. */
  private static final Set<String> OF_FILES =
      Set.of(
          "__globpaths__", "path", "paths", "basepath", "cleansource", "discardcachedinputratio", "filenameonly",
          "ignorecorruptfiles", "ignoredpathsegmentregex", "ignoreinvalidpartitionpaths", "ignoremissingfiles",
          "latestfirst", "maxbytespertrigger", "maxcachedfiles", "maxfileage", "maxfilespertrigger",
          "modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup", "sourcearchivedir",
          "witheventtimeorder");

  /** Options that a simple line means the same with, and those of schemas that are inferred. */
  private static final Set<String> OF_LINES =
      Set.of(
          "mode", "columnnameofcorruptrecord", "inferschema", "samplingratio", "timezone", "compression", "codec");

  private static final Set<String> OF_CSV = Set.of("header", "enforceschema", "columnpruning");
  private static final Set<String> OF_JSON =
      Set.of("primitivesasstring", "prefersdecimal", "dropfieldifallnull", "infertimestamp");

  private static final String SEPARATORS = "\t,;|: ";

  /** Return a scan that gives columns, the same scan where lines may mean something else. */
  public SparkPlan columnar(FileSourceScanExec scan) {
    HadoopFsRelation relation = scan.relation();
    FileFormat simple = simple(relation.fileFormat().getClass());
    if (simple == null || !isUnderstood(scan)) {
      return scan;
    }
    Object[] parts = CollectionConverters.asJava(scan.productIterator().toSeq()).toArray();
    parts[0] =
        new HadoopFsRelation(
            relation.location(),
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            simple,
            relation.options(),
            relation.sparkSession());
    SparkPlan columnar = scan.makeCopy(parts);
    return columnar.supportsColumnar() ? columnar : scan;
  }

  private static FileFormat simple(Class<?> format) {
    if (format == CSVFileFormat.class) {
      return new SimpleCsv();
    }
    return format == JsonFileFormat.class ? new SimpleJson() : null;
  }

  private static boolean isUnderstood(FileSourceScanExec scan) {
    boolean isCsv = scan.relation().fileFormat() instanceof CSVFileFormat;
    return scan.dataFilters().isEmpty()
        && isUnderstood(scan.requiredSchema(), scan.relation().options(), isCsv);
  }

  /** Return whether simple lines of CSV or of JSON have a meaning with a schema, options and the settings. */
  static boolean isUnderstood(StructType wanted, Map<String, String> options, boolean isCsv) {
    return wanted.nonEmpty()
        && Arrays.stream(wanted.fieldNames()).distinct().count() == wanted.length()
        && Arrays.stream(wanted.fields()).allMatch(FastScans::isUnderstood)
        && !SQLConf.get().legacyTimeParserPolicy().equals(LegacyBehaviorPolicy.LEGACY())
        && CollectionConverters.asJava(options).entrySet().stream()
            .allMatch(each -> isUnderstood(each.getKey().toLowerCase(Locale.ROOT), each.getValue(), isCsv));
  }

  private static boolean isUnderstood(StructField field) {
    return field.nullable()
        && field.getExistenceDefaultValue().isEmpty()
        && Form.of(field.dataType(), null) != null;
  }

  private static boolean isUnderstood(String option, String value, boolean isCsv) {
    return switch (option) {
      case "sep", "delimiter" -> isCsv && (value.equals("\\t") || value.length() == 1 && SEPARATORS.contains(value));
      case "encoding", "charset" -> value.equalsIgnoreCase("UTF-8");
      // Names with a dot are Hadoop's.
      default ->
          option.contains(".")
              || OF_FILES.contains(option)
              || OF_LINES.contains(option)
              || (isCsv ? OF_CSV : OF_JSON).contains(option);
    };
  }
}
