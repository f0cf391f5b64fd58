// Parts of figures: escaped text, round ticks, traces that stay bounded, and SVG to the letter.
#include "watch/svg.h"

#include "support.h"
#include "watch/axis.h"
#include "watch/chart.h"
#include "watch/markup.h"
#include "watch/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void escapes(const char *text, int most, const char *want) {
    char *is = NULL;
    size_t bytes;
    FILE *out = open_memstream(&is, &bytes);
    assert_non_null(out);
    if (most)
        markup_short(out, text, most);
    else
        markup_text(out, text);
    fclose(out);
    assert_string_equal(is, want);
    free(is);
}

static void text_stays_text(void **state) {
    (void)state;
    escapes("a < b & c > \"d\" 'e'", 0, "a &lt; b &amp; c &gt; &quot;d&quot; &#39;e&#39;");
    escapes("</text><script>alert(1)</script>", 0, "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
    escapes("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    escapes("a\x01\x1b[0m\tb\n", 0, "a\xef\xbf\xbd\xef\xbf\xbd[0m\tb\n");
    // A stray byte, a long form of /, a surrogate, beyond the last character, a cut character.
    escapes("\xff", 0, "\xef\xbf\xbd");
    escapes("\xc0\xaf", 0, "\xef\xbf\xbd\xef\xbf\xbd");
    escapes("\xed\xa0\x80", 0, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    escapes("\xf4\x90\x80\x80", 0, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    escapes("\xe2\x82", 0, "\xef\xbf\xbd\xef\xbf\xbd");
    escapes("abcdef", 6, "abcdef");
    escapes("abcdefg", 6, "abcde\xe2\x80\xa6");
    escapes("<<<<", 3, "&lt;&lt;\xe2\x80\xa6");
}

static void ticks_are(const axis *a, const char *want) {
    char all[512] = "", one[48];
    for (int i = 0; i < a->ticks; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "",
            axis_label(a, a->at[i], one, sizeof one));
    assert_string_equal(all, want);
}

static void ticks_are_round(void **state) {
    (void)state;
    const struct {
        axis a;
        const char *want;
    } rows[] = {{axis_numbers(0.03, 0.97, 5), "0.0 0.2 0.4 0.6 0.8 1.0"},
        {axis_numbers(-0.4, 0.4, 4), "-0.4 -0.2 0.0 0.2 0.4"},
        {axis_numbers(9000, 31000, 5), "5,000 10,000 15,000 20,000 25,000 30,000 35,000"},
        {axis_numbers(1.1e-9, 1.9e-9, 4), "1e-09 1.2e-09 1.4e-09 1.6e-09 1.8e-09 2e-09"},
        {axis_numbers(3, 3, 3), "1 2 3 4 5"}, {axis_numbers(0, 0, 2), "-0.5 0.0 0.5"},
        {axis_numbers(INFINITY, -INFINITY, 2), "0.0 0.5 1.0"}, {axis_numbers(NAN, 1, 2), "0.0 0.5 1.0"},
        {axis_counts(1, 8, 8), "1 2 3 4 5 6 7 8"}, {axis_counts(1, 3, 8), "1 2 3"},
        {axis_counts(1, 95, 5), "20 40 60 80"},
        // 2024-01-15 to 2024-06-20; a leap day's week; some hours; minutes; ten years.
        {axis_times(1705276800, 1718841600, 6), "2024-02 2024-03 2024-04 2024-05 2024-06"},
        {axis_times(1709078400, 1709510400, 6), "02-28 02-29 03-01 03-02 03-03 03-04"},
        {axis_times(1709078400, 1709089200, 3), "00:00 01:00 02:00 03:00"},
        {axis_times(1709078405, 1709078525, 4), "00:00:30 00:01:00 00:01:30 00:02:00"},
        {axis_times(1420070400, 1735689600, 6), "2016 2018 2020 2022 2024"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) ticks_are(&rows[i].a, rows[i].want);
    const axis odd[] = {axis_times(-1e18, 1e18, 6), axis_times(1e17, 2e17, 6), axis_times(0, 1e300, 6),
        axis_times(-9e10, 9e10, 6), axis_numbers(-1e308, 1e308, 6)};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) assert_true(odd[i].ticks <= AXIS_TICKS_MOST); // and it ends
}

static void traces_stay_bounded(void **state) {
    (void)state;
    trace *t = trace_new();
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int i = 0; i < TRACE_MOST; i++) trace_add(t, i, i - 1, i, i + 1);
    assert_int_equal(t->count, TRACE_MOST);
    assert_true(t->x[7] == 7 && t->low[7] == 6 && t->mean[7] == 7 && t->high[7] == 8);
    for (int i = TRACE_MOST; i < 64 * TRACE_MOST; i++) trace_add(t, i, i - 1, i, i + 1);
    trace_add(t, NAN, 1, 1, 1);
    trace_add(t, 1, 1, INFINITY, 1);
    assert_true(t->count <= TRACE_MOST && t->each == 64);
    for (int i = 0; i < t->count; i++) {
        low = fmin(low, t->low[i]);
        high = fmax(high, t->high[i]);
        sum += t->mean[i] / t->count;
    }
    assert_true(low == -1 && high == 64 * TRACE_MOST && t->x[t->count - 1] == 64 * TRACE_MOST - 1);
    assert_true(fabs(sum - (64 * TRACE_MOST - 1) / 2.0) < 1e-6);
    trace_free(t);
}

static void shapes_are_written_to_the_letter(void **state) {
    (void)state;
    svg s;
    svg_open(&s, "tiny", 40, 20, "A <title>");
    svg_describe(&s, "%d & more", 2);
    svg_line(&s, "axis", (svg_point){0, 1}, (svg_point){2.25, 3});
    svg_rect(&s, "fa", 1, 2, 3, 4);
    svg_path(&s, "line la", (svg_point[]){{0, 0}, {1, 1}, {NAN, 2}, {3, 3}, {4, 4}}, 5);
    svg_path(&s, "line la", (svg_point[]){{NAN, 0}}, 1);
    svg_area(&s, "fa pale", (svg_point[]){{0, 1}, {1, 1}}, (svg_point[]){{0, 2}, {1, 2}}, 2);
    svg_triangle(&s, "fb", (svg_point){5, 5}, 2, 1);
    svg_words(&s, "small", SVG_END, (svg_point){9, 9}, "x<y", 0);
    char *text = svg_inline(&s), *file = svg_file(&s);
    assert_string_equal(text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 40 20\" role=\"img\" aria-labelledby=\"tiny-40-t "
        "tiny-40-d\">\n<title id=\"tiny-40-t\">A &lt;title&gt;</title>\n<desc id=\"tiny-40-d\">2 &amp; more</desc>\n"
        "<line class=\"axis\" x1=\"0.0\" y1=\"1.0\" x2=\"2.2\" y2=\"3.0\"/>\n"
        "<rect class=\"fa\" x=\"1.0\" y=\"2.0\" width=\"3.0\" height=\"4.0\"/>\n"
        "<path class=\"line la\" d=\"M0.0 0.0L1.0 1.0M3.0 3.0L4.0 4.0\"/>\n"
        "<path class=\"fa pale\" d=\"M0.0 1.0L1.0 1.0L1.0 2.0L0.0 2.0Z\"/>\n"
        "<path class=\"fb\" d=\"M5.0 3.0L3.0 7.0L7.0 7.0Z\"/>\n"
        "<text class=\"small\" x=\"9.0\" y=\"9.0\" text-anchor=\"end\">x&lt;y</text>\n</svg>\n");
    assert_ptr_equal(strstr(file, "<?xml"), file);
    assert_non_null(strstr(file, "tradewind report"));
    assert_non_null(strstr(file, "prefers-color-scheme:dark"));
    free(text);
    free(file);
    svg_close(&s);
}

// Two points of a line land in the corners of the plot.
static void charts_place_their_points(void **state) {
    (void)state;
    svg s;
    svg_open(&s, "chart", 478, 270, "t");
    chart c = chart_open(&s, &(chart_place){0, 270, "x", "y"}, axis_counts(0, 10, 5), axis_numbers(0, 1, 5));
    chart_line(&c, &(points){2, (double[]){0, 10}, (double[]){0, 1}}, 0, "name");
    chart_mark(&c, 5, "best");
    char *text = svg_inline(&s);
    assert_non_null(strstr(text, "<path class=\"line la\" d=\"M62.0 226.0L462.0 26.0\"/>"));
    assert_non_null(strstr(text, "<line class=\"mark\" x1=\"262.0\" y1=\"26.0\" x2=\"262.0\" y2=\"226.0\"/>"));
    assert_non_null(strstr(text, ">name</text>"));
    free(text);
    svg_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_text),
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(traces_stay_bounded),
        cmocka_unit_test(shapes_are_written_to_the_letter),
        cmocka_unit_test(charts_place_their_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
