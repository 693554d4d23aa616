package wjoin.lines;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat;
import org.apache.spark.sql.internal.LegacyBehaviorPolicy;
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

  /** Options that a simple line means the same with. */
  private static final Set<String> OF_CSV =
      Set.of(
          "header", "enforceschema", "mode", "columnnameofcorruptrecord", "columnpruning", "inferschema",
          "samplingratio", "timezone", "compression", "codec");

  private static final String SEPARATORS = "\t,;|: ";

  /** Return a scan that gives columns, the same scan where lines may mean something else. */
  public SparkPlan columnar(FileSourceScanExec scan) {
    HadoopFsRelation relation = scan.relation();
    if (relation.fileFormat().getClass() != CSVFileFormat.class || !isUnderstood(scan)) {
      return scan;
    }
    Object[] parts = CollectionConverters.asJava(scan.productIterator().toSeq()).toArray();
    parts[0] =
        new HadoopFsRelation(
            relation.location(),
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            new SimpleCsv(),
            relation.options(),
            relation.sparkSession());
    SparkPlan columnar = scan.makeCopy(parts);
    return columnar.supportsColumnar() ? columnar : scan;
  }

  private static boolean isUnderstood(FileSourceScanExec scan) {
    Map<String, String> options = CollectionConverters.asJava(scan.relation().options());
    return scan.requiredSchema().nonEmpty()
        && scan.dataFilters().isEmpty()
        && Arrays.stream(scan.requiredSchema().fields())
            .allMatch(each -> each.nullable() && Form.of(each.dataType(), null) != null)
        && !scan.conf().legacyTimeParserPolicy().equals(LegacyBehaviorPolicy.LEGACY())
        && options.entrySet().stream()
            .allMatch(each -> isUnderstood(each.getKey().toLowerCase(Locale.ROOT), each.getValue()));
  }

  private static boolean isUnderstood(String option, String value) {
    return switch (option) {
      case "sep", "delimiter" -> value.equals("\\t") || value.length() == 1 && SEPARATORS.contains(value);
      case "encoding", "charset" -> value.equalsIgnoreCase("UTF-8");
      // Names with a dot are Hadoop's.
      default -> option.contains(".") || OF_FILES.contains(option) || OF_CSV.contains(option);
    };
  }
}
