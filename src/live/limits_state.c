// The state of the limits as one line of JSON, and back.
#include "base/json.h"
#include "live/limits.h"

#include <math.h>
#include <string.h>

enum { FORMAT = 1, DIGITS = 17 };

static json_t *orders_json(const limits_state *s) {
    json_t *all = json_array();
    for (int i = 0; i < s->orders; i++) json_array_append_new(all, json_real(s->order[i]));
    return all;
}

static json_t *broken_json(const limits_state *s) {
    json_t *all = json_object();
    for (int r = 0; r < LIMITS_RULES; r++)
        if (s->broken[r]) json_object_set_new(all, limits_rule_key((limits_rule)r), json_integer(s->broken[r]));
    return all;
}

char *limits_save(const limits_state *s) {
    json_t *j = json_object();
    json_object_set_new(j, "format", json_integer(FORMAT));
    json_object_set_new(j, "start_equity", json_integer(s->start_equity));
    json_object_set_new(j, "last_equity", json_integer(s->last_equity));
    if (s->day != LIMITS_NO_DAY) json_object_set_new(j, "day", json_integer(s->day));
    json_object_set_new(j, "day_equity", json_integer(s->day_equity));
    json_object_set_new(j, "day_over", json_boolean(s->day_over));
    json_object_set_new(j, "ended", json_boolean(s->ended));
    json_object_set_new(j, "stale", json_boolean(s->is_stale));
    json_object_set_new(j, "other", json_boolean(s->is_other));
    json_object_set_new(j, "price", json_real(s->price));
    if (s->stopped) json_object_set_new(j, "stopped_by", json_string(limits_rule_key(s->stopped_by)));
    json_object_set_new(j, "broken", broken_json(s));
    json_object_set_new(j, "machine", json_real(s->machine));
    json_object_set_new(j, "orders", orders_json(s));
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    NEED(text, "no memory for the state of the limits");
    json_decref(j);
    return text;
}

static bool refuse(err *e, const char *key) {
    return err_input(e, "state of the limits: %s is missing or no such value; is the file damaged?", key);
}

static bool get_integer(const json_t *j, const char *key, int64_t *v, err *e) {
    const json_t *at = json_object_get(j, key);
    if (!json_is_integer(at)) return refuse(e, key);
    *v = json_integer_value(at);
    return true;
}

static bool get_flag(const json_t *j, const char *key, bool *v, err *e) {
    const json_t *at = json_object_get(j, key);
    if (!json_is_boolean(at)) return refuse(e, key);
    *v = json_is_true(at);
    return true;
}

static bool get_moment(const json_t *at, const char *key, double *v, err *e) {
    const double most = 1e14;
    if (!json_is_number(at) || !(fabs(json_number_value(at)) <= most)) return refuse(e, key);
    *v = json_number_value(at);
    return true;
}

static bool get_orders(const json_t *j, limits_state *s, err *e) {
    const json_t *all = json_object_get(j, "orders");
    if (!json_is_array(all) || json_array_size(all) > LIMITS_ORDERS_MOST) return refuse(e, "orders");
    s->orders = (int)json_array_size(all);
    for (int i = 0; i < s->orders; i++)
        if (!get_moment(json_array_get(all, (size_t)i), "orders", &s->order[i], e)) return false;
    return true;
}

// A state of before this rule has seen no price.
static bool get_price(const json_t *j, limits_state *s, err *e) {
    const double most = 1e12;
    const json_t *at = json_object_get(j, "price");
    if (!at) return true;
    s->price = json_number_value(at);
    if (!json_is_number(at) || !(s->price >= 0 && s->price <= most)) return refuse(e, "price");
    return get_flag(j, "other", &s->is_other, e);
}

// The rule of a word; LIMITS_RULES where there is none.
static limits_rule rule_of(const char *word) {
    int r = 0;
    while (r < LIMITS_RULES && strcmp(word, limits_rule_key((limits_rule)r)) != 0) r++;
    return (limits_rule)r;
}

static bool get_broken(json_t *j, limits_state *s, err *e) {
    json_t *all = json_object_get(j, "broken"), *at;
    const char *word;
    if (!json_is_object(all)) return refuse(e, "broken");
    json_object_foreach(all, word, at) {
        limits_rule r = rule_of(word);
        if (r == LIMITS_RULES) continue; // of a program that had a further rule
        if (!json_is_integer(at) || json_integer_value(at) < 0) return refuse(e, "broken");
        s->broken[r] = json_integer_value(at);
    }
    return true;
}

// A stop of a rule that this program does not know stays a stop.
static bool get_stop(const json_t *j, limits_state *s, err *e) {
    const json_t *at = json_object_get(j, "stopped_by");
    if (!at) return true;
    if (!json_is_string(at)) return refuse(e, "stopped_by");
    limits_rule r = rule_of(json_string_value(at));
    s->stopped = true;
    s->stopped_by = r == LIMITS_RULES ? LIMIT_POSITION : r;
    return true;
}

static bool get_day(const json_t *j, limits_state *s, err *e) {
    const int64_t most = (int64_t)1 << 40;
    s->day = LIMITS_NO_DAY;
    if (!json_object_get(j, "day")) return true;
    return get_integer(j, "day", &s->day, e) && ((s->day > -most && s->day < most) || refuse(e, "day"));
}

bool limits_load(limits_state *s, const char *text, size_t bytes, err *e) {
    err why = {0};
    int64_t format = 0;
    limits_state new = {0};
    json_t *j = json_read(text, bytes, &why);
    if (!j) return err_input(e, "state of the limits: %.200s; is the file damaged?", why.text);
    bool ok = json_is_object(j) || refuse(e, "an object");
    ok = ok && get_integer(j, "format", &format, e) &&
         (format == FORMAT ||
             err_input(e, "state of the limits: is of format %lld, this program reads %d; use a newer one",
                 (long long)format, FORMAT));
    ok = ok && get_integer(j, "start_equity", &new.start_equity, e) &&
         get_integer(j, "last_equity", &new.last_equity, e) && get_day(j, &new, e) &&
         get_integer(j, "day_equity", &new.day_equity, e) && get_flag(j, "day_over", &new.day_over, e) &&
         get_flag(j, "ended", &new.ended, e) && get_flag(j, "stale", &new.is_stale, e) && get_stop(j, &new, e) &&
         get_broken(j, &new, e) && get_moment(json_object_get(j, "machine"), "machine", &new.machine, e) &&
         get_orders(j, &new, e) && get_price(j, &new, e);
    json_decref(j);
    if (ok) *s = new;
    return ok;
}
