// cartpole: a pole on a cart that is pushed left (0) or right (1), as Gymnasium's CartPole-v1.
//   observation: position, velocity, angle, angular velocity; reward 1 for every step
// It terminates where the cart leaves +-2.4 or the pole leans over by more than 12 degrees; 500 steps usually.
//
// cartpole_positions: the same without the velocities, for policies that remember.
#ifndef TRADEWIND_ENV_CARTPOLE_H
#define TRADEWIND_ENV_CARTPOLE_H

#include "env/maths.h"

typedef struct {
    double x, speed, angle, turn;
} cartpole_state;

ENV_FN env_shape cartpole_shape(const env_settings *s) {
    (void)s;
    env_shape shape = {4, 2, 1, 500};
    return shape;
}

ENV_FN void cartpole_reset(const env_settings *s, const env_data *d, const env_dice *dice, cartpole_state *c) {
    (void)s, (void)d;
    rng_block r = env_draw(dice, 0);
    c->x = env_between(r.v[0], -0.05, 0.05);
    c->speed = env_between(r.v[1], -0.05, 0.05);
    c->angle = env_between(r.v[2], -0.05, 0.05);
    c->turn = env_between(r.v[3], -0.05, 0.05);
}

ENV_FN void cartpole_observe(const env_settings *s, const env_data *d, const cartpole_state *c, float *to) {
    (void)s, (void)d;
    to[0] = (float)c->x;
    to[1] = (float)c->speed;
    to[2] = (float)c->angle;
    to[3] = (float)c->turn;
}

ENV_FN env_end cartpole_step(
    const env_settings *s, const env_data *d, cartpole_state *c, const float *action, double *reward) {
    (void)s, (void)d;
    const double gravity = 9.8, pole = 0.1, all = 1.1, half = 0.5, tick = 0.02;
    double push = action[0] > 0.5f ? 10.0 : -10.0, sine = maths_sin(c->angle), cosine = maths_cos(c->angle);
    double drive = (push + pole * half * (c->turn * c->turn) * sine) / all;
    double bend = (gravity * sine - cosine * drive) / (half * (4.0 / 3.0 - pole * (cosine * cosine) / all));
    double pull = drive - pole * half * bend * cosine / all;
    c->x = c->x + tick * c->speed;
    c->speed = c->speed + tick * pull;
    c->angle = c->angle + tick * c->turn;
    c->turn = c->turn + tick * bend;
    *reward = 1.0;
    const double lean = 12 * 2 * 3.14159265358979323846 / 360;
    bool over = c->x < -2.4 || c->x > 2.4 || c->angle < -lean || c->angle > lean;
    return over ? ENV_TERMINATED : ENV_GOES_ON;
}

typedef cartpole_state cartpole_positions_state;

ENV_FN env_shape cartpole_positions_shape(const env_settings *s) {
    env_shape shape = cartpole_shape(s);
    shape.observation = 2;
    return shape;
}

ENV_FN void cartpole_positions_reset(
    const env_settings *s, const env_data *d, const env_dice *dice, cartpole_positions_state *c) {
    cartpole_reset(s, d, dice, c);
}

ENV_FN void cartpole_positions_observe(
    const env_settings *s, const env_data *d, const cartpole_positions_state *c, float *to) {
    (void)s, (void)d;
    to[0] = (float)c->x;
    to[1] = (float)c->angle;
}

ENV_FN env_end cartpole_positions_step(
    const env_settings *s, const env_data *d, cartpole_positions_state *c, const float *action, double *reward) {
    return cartpole_step(s, d, c, action, reward);
}

#endif
