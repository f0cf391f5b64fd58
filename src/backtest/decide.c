#include "backtest/decide.h"

#include "base/term.h"
#include "env/account_terms.h"

#include <math.h>
#include <stdio.h>

enum { VOLATILITY_BARS = 100 };

// Share of what the leverage allows that a size by volatility may take: costs and a gap at the open need the rest.
static const double headroom = 0.95;

// Rules

static double distance(double given, double usual) {
    return given == SIGNAL_AUTO ? usual : given;
}

void decide_rule_make(decide_rule *r, const signal_settings *s, const build_options *label, double bars_a_year) {
    int64_t measured = build_volatility_bars(label);
    bool barrier = label->label == BUILD_BARRIER;
    double up = barrier ? label->barrier.up : 0, down = barrier ? label->barrier.down : 0;
    *r = (decide_rule){.threshold = s->threshold,
        .hold = s->hold == SIGNAL_AUTO ? build_reach(label) : s->hold,
        .exit = s->exit,
        .up = {distance(s->stop, down), distance(s->target, up)},
        .down = {distance(s->stop, up), distance(s->target, down)},
        .returns = barrier && !measured,
        .sizing = s->sizing,
        .size = s->size,
        .volatility_bars = measured ? measured : VOLATILITY_BARS,
        .bars_a_year = bars_a_year};
}

static bool has_distance(const decide_rule *r) {
    return r->up.stop > 0 || r->up.target > 0 || r->down.stop > 0 || r->down.target > 0;
}

bool decide_needs_volatility(const decide_rule *r) {
    return r->sizing == SIGNAL_VOLATILITY || (has_distance(r) && !r->returns);
}

int decide_side(const decide_rule *r, double score) {
    if (!(fabs(score) >= r->threshold) || score == 0) return 0;
    return score > 0 ? 1 : -1;
}

// Scores

double decide_score_classes(const float *probability, int classes) {
    double down = 0, up = 0;
    for (int k = 0; k < classes / 2; k++) {
        down += (double)probability[k];
        up += (double)probability[classes - 1 - k];
    }
    return up == down ? 0 : up > down ? up : -down;
}

double decide_score_forecast(const float *forecast, int64_t horizon, label_value value, double close) {
    double last = (double)forecast[horizon - 1], sum = 0;
    if (value == LABEL_PATH) return last;
    if (value == LABEL_CLOSE) return last > 0 ? log(last / close) : (double)NAN;
    for (int64_t h = 0; h < horizon; h++) sum += (double)forecast[h];
    return sum;
}

// Orders

// Lots of a new position, not signed; 0 where they cannot be told.
static double lots_of(const decide_rule *r, const decide_prediction *p, const account *a, const account_rules *rules) {
    account books = *a;
    double equity = (double)account_equity(&books, p->close) / 1e8;
    double lot = (double)p->close / 1e8 * ((double)rules->contract / 1e8),
           most = headroom * (double)rules->leverage / 1e8;
    if (r->sizing == SIGNAL_FIXED) return r->size;
    if (!(equity > 0)) return 0;
    if (r->sizing == SIGNAL_EQUITY) return r->size * equity / lot;
    return fmin(r->size / (p->volatility * sqrt(r->bars_a_year)), most) * equity / lot;
}

// A price at a distance from the close; 0 for none.
static int64_t price_at(const decide_rule *r, const decide_prediction *p, double by, int direction) {
    int64_t price;
    double close = (double)p->close / 1e8, unit = r->returns ? 1 : p->volatility;
    if (!(by > 0) || !account_fixed(close * exp(direction * by * unit), &price)) return 0;
    return price > 0 ? price : 1;
}

static void put_exits(const decide_rule *r, const decide_prediction *p, int side, account_order *o) {
    const decide_distance *d = side > 0 ? &r->up : &r->down;
    o->stop = price_at(r, p, d->stop, -side);
    o->target = price_at(r, p, d->target, side);
}

static account_order enter(
    const decide_rule *r, const decide_prediction *p, int side, const account *a, const account_rules *rules) {
    account_order o = {0};
    int64_t lots;
    bool over = false;
    if (decide_needs_volatility(r) && !(p->volatility > 0)) return o;
    if (!account_fixed(side * lots_of(r, p, a, rules), &lots)) return o;
    o.units = account_units(rules, lots, &over);
    if (over) o.units = 0;
    if (o.units) put_exits(r, p, side, &o);
    return o;
}

// The order that changes nothing.
static account_order keep(const account *a, int side) {
    return (account_order){
        a->units, a->stop == -ACCOUNT_NEVER ? 0 : side * a->stop, a->target == ACCOUNT_NEVER ? 0 : side * a->target};
}

account_order decide(
    const decide_rule *r, const decide_prediction *p, int64_t held, const account *a, const account_rules *rules) {
    int wants = decide_side(r, p->score), has = (a->units > 0) - (a->units < 0);
    bool due = r->hold && held % r->hold == 0;
    bool stays = r->exit == SIGNAL_HORIZON || wants == has || (r->exit == SIGNAL_OPPOSITE && !wants);
    if (wants < 0 && !rules->shorts) wants = 0; // the opposite side ends a position all the same
    if (!has) return wants ? enter(r, p, wants, a, rules) : (account_order){0};
    if (!due && stays) return keep(a, has);
    if (wants != has) return wants ? enter(r, p, wants, a, rules) : (account_order){0};
    account_order o = keep(a, has);
    if (!decide_needs_volatility(r) || p->volatility > 0) put_exits(r, p, has, &o);
    return o;
}

// Words

static int put_distance(char *text, size_t room, const char *name, double up, double down, bool returns) {
    const char *unit = returns ? "" : " volatilities";
    if (!(up > 0)) return snprintf(text, room, "no %s", name);
    if (up == down) return snprintf(text, room, "%s at %g%s", name, up, unit);
    return snprintf(text, room, "%s at %g%s (short: %g)", name, up, unit, down);
}

const char *decide_text(const decide_rule *r, char *text, size_t room) {
    static const char *const ends[] = {[SIGNAL_OPPOSITE] = "until the opposite side is asked for",
        [SIGNAL_NEUTRAL] = "until its side is not asked for",
        [SIGNAL_HORIZON] = "whatever is predicted"};
    static const char *const sizes[] = {[SIGNAL_FIXED] = "%g lots",
        [SIGNAL_VOLATILITY] = "a volatility of %g a year",
        [SIGNAL_EQUITY] = "%g of the equity"};
    char stop[80], target[80], size[80], hold[64] = "";
    put_distance(stop, sizeof stop, "stop", r->up.stop, r->down.stop, r->returns);
    put_distance(target, sizeof target, "target", r->up.target, r->down.target, r->returns);
    if (r->hold) snprintf(hold, sizeof hold, ", %lld bar%s at most", (long long)r->hold, term_s(r->hold));
    snprintf(size, sizeof size, sizes[r->sizing], r->size);
    snprintf(text, room, "scores of %.6g or more; held %s%s; %s, %s; %s", r->threshold, ends[r->exit], hold, stop,
        target, size);
    return text;
}
