// pendulum: a pendulum that is swung up and held by a torque, as Gymnasium's Pendulum-v1.
//   action: the torque, cut to [-2, 2]; observation: cosine and sine of the angle, angular velocity
// The reward is -(angle^2 + 0.1 velocity^2 + 0.001 torque^2), with the angle from the top within [-pi, pi). It never
// terminates; 200 steps usually.
#ifndef TRADEWIND_ENV_PENDULUM_H
#define TRADEWIND_ENV_PENDULUM_H

#include "env/maths.h"

typedef struct {
    double angle, speed;
} pendulum_state;

ENV_FN env_shape pendulum_shape(const env_settings *s) {
    (void)s;
    env_shape shape = {3, 0, 1, 200};
    return shape;
}

ENV_FN void pendulum_reset(const env_settings *s, const env_data *d, const env_dice *dice, pendulum_state *p) {
    (void)s, (void)d;
    rng_block r = env_draw(dice, 0);
    p->angle = env_between(r.v[0], -3.14159265358979323846, 3.14159265358979323846);
    p->speed = env_between(r.v[1], -1, 1);
}

ENV_FN void pendulum_observe(const env_settings *s, const env_data *d, const pendulum_state *p, float *to) {
    (void)s, (void)d;
    to[0] = (float)maths_cos(p->angle);
    to[1] = (float)maths_sin(p->angle);
    to[2] = (float)p->speed;
}

ENV_FN double pendulum_cut(double v, double most) {
    return v > most ? most : v < -most ? -most : v;
}

// The angle within [-pi, pi).
ENV_FN double pendulum_from_top(double angle) {
    const double pi = 3.14159265358979323846;
    double turns = (angle + pi) / (2 * pi);
    int64_t whole = (int64_t)turns;
    if ((double)whole > turns) whole--;
    return angle - (double)whole * (2 * pi);
}

ENV_FN env_end pendulum_step(
    const env_settings *s, const env_data *d, pendulum_state *p, const float *action, double *reward) {
    (void)s, (void)d;
    const double gravity = 10, tick = 0.05;
    double torque = pendulum_cut((double)action[0], 2), lean = pendulum_from_top(p->angle);
    *reward = -(lean * lean + 0.1 * (p->speed * p->speed) + 0.001 * (torque * torque));
    double speed = p->speed + (3 * gravity / 2 * maths_sin(p->angle) + 3 * torque) * tick;
    p->speed = pendulum_cut(speed, 8);
    p->angle = p->angle + p->speed * tick;
    return ENV_GOES_ON;
}

#endif
