import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import com.yahoo.searchlib.rankingexpression.evaluation.StringValue;
import com.yahoo.tensor.Tensor;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Evaluate every ranking expression of a folder for its rows. The first row has the names of the
 * columns, of which the first is the query; text is an x and the digits of its bytes. Calls of
 * normalizers become features of their own, as in an application, which Vespa's normalizers of the
 * global phase compute from all rows of a query.
 */
public class Vespa {
  static final Pattern CALL =
      Pattern.compile("(normalize_linear|reciprocal_rank)\\((f\\d+)(?:, (\\d+))?\\)");

  public static void main(String[] args) throws Exception {
    System.out.println("ready");
    Path folder = Path.of(args[0]);
    Map<String, List<MapContext>> queries = new LinkedHashMap<>();
    List<MapContext> rows = new ArrayList<>();
    List<String> lines = Files.readAllLines(folder.resolve("rows"));
    String[] names = lines.get(0).split("\t");
    for (String row : lines.subList(1, lines.size())) {
      String[] values = row.split("\t");
      MapContext context = new MapContext();
      for (int j = 1; j < values.length; j++) {
        if (values[j].startsWith("x")) {
          byte[] text = HexFormat.of().parseHex(values[j].substring(1));
          context.put(names[j], new StringValue(new String(text, StandardCharsets.UTF_8)));
        } else {
          context.put(names[j], Double.parseDouble(values[j].replace("nan", "NaN")));
        }
      }
      rows.add(context);
      queries.computeIfAbsent(values[0], query -> new ArrayList<>()).add(context);
    }
    try (DirectoryStream<Path> models = Files.newDirectoryStream(folder, "*.expression")) {
      for (Path model : models) {
        String text = Files.readString(model);
        Matcher calls = CALL.matcher(text);
        while (calls.find()) {
          String name = "of" + Integer.toHexString(calls.group().hashCode());
          text = text.replace(calls.group(), name);
          for (List<MapContext> query : queries.values()) {
            normalize(query, name, calls.group(2), calls.group(3));
          }
        }
        RankingExpression expression = new RankingExpression(text);
        List<String> found = new ArrayList<>();
        for (MapContext row : rows) {
          Tensor value = expression.evaluate(row).asTensor();
          List<String> cells = new ArrayList<>();
          value.valueIterator().forEachRemaining(cell -> cells.add(Double.toString(cell)));
          found.add(String.join("\t", cells));
        }
        Files.write(Path.of(model.toString().replace(".expression", ".scores")), found);
      }
    }
    System.out.println("done");
    while (System.in.read() >= 0) {}
  }

  /** Give the hits of a query a feature that a normalizer makes of another one. */
  static void normalize(List<MapContext> hits, String name, String feature, String k)
      throws Exception {
    String kind = k == null ? "LinearNormalizer" : "ReciprocalRankNormalizer";
    Constructor<?> make =
        Class.forName("com.yahoo.search.ranking." + kind).getDeclaredConstructors()[0];
    make.setAccessible(true);
    Object normalizer =
        k == null ? make.newInstance(hits.size()) : make.newInstance(hits.size(), Double.valueOf(k));
    Method add = method(normalizer, "addInput"), get = method(normalizer, "getOutput");
    for (MapContext hit : hits) {
      add.invoke(normalizer, hit.get(feature).asDouble());
    }
    method(normalizer, "normalize").invoke(normalizer);
    for (int place = 0; place < hits.size(); place++) {
      hits.get(place).put(name, (double) get.invoke(normalizer, place));
    }
  }

  static Method method(Object normalizer, String name) {
    Class<?> kind = normalizer.getClass();
    Method found =
        Arrays.stream(kind.getSuperclass().getDeclaredMethods())
            .filter(one -> one.getName().equals(name))
            .findFirst()
            .orElseThrow();
    found.setAccessible(true);
    return found;
  }
}
