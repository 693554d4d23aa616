package wjoin.columns;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What is in a block: its columns, and which of them are copies of a column of the input.
 *
 * @param copied for each column the number of the input's column that it is; -1 where it is computed
 * @param computed the expressions of the others, and {@code input} what they are over
 */
record Layout(
    StructType schema,
    int[] copied,
    Seq<Expression> computed,
    Seq<Attribute> input,
    String timeZone,
    boolean largeTypes)
    implements Serializable {
  /** The column that tells whether a row passes its stream's filters; executor/spark/pack.py has the same. */
  private static final String KEPT = "__wjoin_keep";

  static Layout of(Seq<NamedExpression> columns, Seq<Attribute> input, SQLConf conf) {
    List<Attribute> given = CollectionConverters.asJava(input);
    List<NamedExpression> wanted = CollectionConverters.asJava(columns);
    boolean large = conf.arrowUseLargeVarTypes();
    int[] copied = new int[wanted.size()];
    List<Expression> computed = new ArrayList<>();
    Expression kept = kept(wanted);
    StructField[] fields = new StructField[wanted.size()];
    for (int n = 0; n < copied.length; n++) {
      NamedExpression column = wanted.get(n);
      Attribute attribute = column.toAttribute();
      fields[n] = new StructField(
          attribute.name(), attribute.dataType(), attribute.nullable(), attribute.metadata());
      copied[n] = Copies.of(attribute.dataType(), large) ? place(column, kept, given) : -1;
      if (copied[n] < 0) {
        computed.add((Expression) column);
      }
    }
    return new Layout(
        new StructType(fields),
        copied,
        CollectionConverters.asScala(computed).toSeq(),
        input,
        conf.sessionLocalTimeZone(),
        large);
  }

  /** Return the expression of which rows pass the filter, null where there is none. */
  private static Expression kept(List<NamedExpression> columns) {
    for (NamedExpression each : columns) {
      if (each.name().equals(KEPT)) {
        return value(each);
      }
    }
    return null;
  }

  private static Expression value(NamedExpression column) {
    return column instanceof Alias alias ? alias.child() : (Expression) column;
  }

  /**
   * Return the number of the input's column that an expression is, -1 where it is another one.
   *
   * <p>What a row has that the filter removes is not read, so it may have a column's value in place of NULL.
   */
  private static int place(NamedExpression column, Expression kept, List<Attribute> input) {
    Expression value = value(column);
    if (kept != null
        && value instanceof CaseWhen hidden
        && hidden.elseValue().isEmpty()
        && hidden.branches().size() == 1
        && hidden.branches().head()._1().semanticEquals(kept)) {
      value = hidden.branches().head()._2();
    }
    for (int n = 0; n < input.size(); n++) {
      if (value instanceof Attribute attribute && attribute.exprId().equals(input.get(n).exprId())) {
        return n;
      }
    }
    return -1;
  }

  /** Return the schema of the columns that are computed, or of those that are copied. */
  StructType part(boolean isComputed) {
    List<StructField> fields = new ArrayList<>();
    for (int n = 0; n < copied.length; n++) {
      if (copied[n] < 0 == isComputed) {
        fields.add(schema.fields()[n]);
      }
    }
    return new StructType(fields.toArray(new StructField[0]));
  }
}
