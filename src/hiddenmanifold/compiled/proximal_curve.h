/* Gaussian averages along the proximal curve, in one pass over the nodes of each point.

   What proximal_curve.py and averages.py say in NumPy, and docs/theory.md derives: for the shortfall
   u = mean - deviation xi of one label, with proximal point s, u = s + V loss'(s),

       h = loss'(s),    g = loss''/(1 + V loss''),    Z = o + sum_j w_j Phi((slope xi - t_j)/sqrt(V0 + D_j)),

   and the fifteen sums, over dxi with the normal density, that the saddle point is made of. Losses
   are not known here by name: they come as polynomials on cells (see numerics/cells.py), label laws
   as weights, thresholds and variances, or each point's as polynomials on cells of the field (see
   teachers/tables.py). Constants of the quadrature are passed in by Python, which explains them. A cell of NaN marks what no polynomial describes; the sums of a point that
   needs it are NaN, and NumPy is asked instead. */

#ifndef PROXIMAL_CURVE_H
#define PROXIMAL_CURVE_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
/* no number depends on these: loops over lanes become vector instructions */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#if defined(__GNUC__) || defined(__clang__)
#define INLINE static inline __attribute__((always_inline))
#define FOUR_AT_ONCE
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));
#elif defined(_MSC_VER)
#define INLINE static __forceinline
#else
#define INLINE static inline
#endif
/* the best instruction set is chosen when the library is loaded; this takes gcc and glibc */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12
#define FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_MACHINE
#endif

enum {
    LANES = 8,
    CAPACITY = 256,      /* nodes handled together, a multiple of LANES */
    TOGETHER = 64,       /* nodes of a panel added together, at most */
    POWERS = 12,         /* coefficients of a polynomial on a cell, checked in every call */
    CURVED = POWERS / 2, /* pairs of them of a loss that bends */
    OF_A_POWER = 4,      /* numbers per power of a label law: Z, Z', Z'' and none */
};
/* E[Z g], E[Z h^2], E[Z h], E[Z loss], E[Z], E[Z g xi], ... */
enum { SUM_G, SUM_HH, SUM_H, SUM_LOSS, SUM_NORM, GX, GXX, GH, GHX, GHH, SUM_H1, G1, G1X, G2, G1H, SUMS };

/* The averages of a label, and the unknowns by which they are differentiated, in the order in which
   Python has them: it compares these names with its own when the module is loaded. */
#define ALL_AVERAGES(name) name(e1) name(e2) name(e3) name(e0)
#define ALL_UNKNOWNS(name) name(log_V) name(log_Q) name(tilt) name(beta)
#define AVERAGE(name) AVERAGE_##name,
#define UNKNOWN(name) BY_##name,
enum { ALL_AVERAGES(AVERAGE) AVERAGES };
enum { ALL_UNKNOWNS(UNKNOWN) UNKNOWNS };

/* How the curve is cut and how roots are sought: as in theory/labels_side/proximal_curve.py and
   numerics/roots.py, where each is explained. */
typedef struct {
    const double *fan; /* edges of panels, in standard deviations */
    ptrdiff_t fanned;
    double reach, flat, narrow, aside, narrowest, slender, point;
    int patience, close;
} Settings;

/* ------------------------------------------------------------------ the normal law */

/* e^x of x <= 0, to 1 ulp; zero below -708. */
INLINE double decay(double x)
{
    const double magic = 6755399441055744.0; /* 3 * 2^51: its last bits count units */
    double shifted = x * 1.4426950408889634 + magic;
    double n = shifted - magic;
    double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10; /* Taylor: |r| <= log(2)/2 */
    p = ((p * r + 2.08767569878681e-09) * r + 2.505210838544172e-08) * r + 2.755731922398589e-07;
    p = ((p * r + 2.7557319223985893e-06) * r + 2.48015873015873e-05) * r + 1.984126984126984e-04;
    p = ((p * r + 1.388888888888889e-03) * r + 8.333333333333333e-03) * r + 4.1666666666666664e-02;
    p = ((p * r + 1.6666666666666666e-01) * r + 0.5) * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &shifted, sizeof power);
    bits += power << 52; /* times 2^n */
    memcpy(&p, &bits, sizeof p);
    return x < -708.0 ? 0.0 : p;
}

/* phi(t), the normal density. */
INLINE double density(double t) { return 0.3989422804014327 * decay(-0.5 * t * t); }

/* The Mills ratio (1 - Phi(t))/phi(t), 0 <= t <= 40: (1 + t) times it is smooth in
   q = (t - 5)/(t + 5), here a polynomial that interpolates it to 7e-17. */
INLINE double mills(double t)
{
    double both = 1.0 / ((t + 5.0) * (1.0 + t));
    double q = (t - 5.0) * (1.0 + t) * both;
    double p = 5.5046381740114145e-09;
    p = ((p * q + 4.042967757143865e-09) * q - 6.600576816872284e-08) * q - 5.406265075207721e-08;
    p = ((p * q + 4.793850714655945e-07) * q + 3.0651244506755494e-07) * q - 3.269139906295844e-06;
    p = ((p * q - 1.66568631900845e-07) * q + 2.2706305975126677e-05) * q - 2.4810060457200764e-05;
    p = ((p * q - 0.00013437341693300388) * q + 0.00045704507213429685) * q + 1.953049420669105e-05;
    p = ((p * q - 0.004201290521409951) * q + 0.01634823129621999) * q - 0.03802659216724148;
    p = ((p * q + 0.061505045839232206) * q - 0.06617760078001313) * q + 0.02507217930166957;
    p = ((p * q + 0.0777815988687552) * q - 0.2294875382521135) * q + 1.1568486282918946;
    return p * (t + 5.0) * both;
}

/* Phi(t), given phi(t). */
INLINE double cumulative(double t, double phi)
{
    double far = fabs(t), tail = phi * mills(far < 40.0 ? far : 40.0);
    return t < 0.0 ? tail : 1.0 - tail;
}

/* ------------------------------------------------------------------ the loss */

/* Cells of stride numbers: right end, origin o, 1/unit, and coefficients in powers of t =
   (s - o)/unit, by pairs of an even and an odd power: those of loss' and loss'' side by side, then
   those of the loss. Bins of equal width say in which cell to begin. */
typedef struct {
    const double *cells, *first;
    ptrdiff_t stride, pairs, bins;
    double low, per_bin;
    const double *knot, *below, *above, *bend, *kink;
    ptrdiff_t knots;
    int kinks;    /* whether there are kinks, which divide cells */
    int jumps;    /* whether loss' jumps at some of them */
    double scale; /* 0 if loss'' is constant between kinks */
    const Settings *settings;
} Loss;

INLINE double bin_of(const Loss *loss, double s)
{
    double at = (s - loss->low) * loss->per_bin, last = (double)(loss->bins - 1);
    return at > 0.0 ? (at < last ? at : last) : 0.0;
}

INLINE const double *cell_in(const Loss *loss, double bin, double s)
{
    if (!loss->kinks) /* a cell is a bin */
        return loss->cells + (ptrdiff_t)bin * loss->stride;
    const double *cell = loss->cells + (ptrdiff_t)loss->first[(ptrdiff_t)bin] * loss->stride;
    while (s > cell[0])
        cell += loss->stride;
    while (cell > loss->cells && s <= cell[-loss->stride])
        cell -= loss->stride;
    return cell;
}

INLINE const double *cell_of(const Loss *loss, double s)
{
    return cell_in(loss, bin_of(loss, s), s);
}

typedef struct {
    double h, curvature, value;
} Values;

/* loss', loss'' and, if wanted, the loss: even and odd powers are summed apart, four sums at once. */
INLINE void polynomials(const double *cell, int pairs, double s, int with_loss, Values *v)
{
    const double *p = cell + 3, *q = p + 4 * pairs;
    double t = (s - cell[1]) * cell[2], square = t * t, even = 0.0, odd = 0.0;
#ifdef FOUR_AT_ONCE
    Four sums = *(const Four *)(p + 4 * (pairs - 1));
    for (int i = pairs - 2; i >= 0; i--)
        sums = sums * square + *(const Four *)(p + 4 * i);
#else
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (int i = pairs - 1; i >= 0; i--)
        for (int j = 0; j < 4; j++)
            sums[j] = sums[j] * square + p[4 * i + j];
#endif
    for (int i = pairs - 1; with_loss && i >= 0; i--) {
        even = even * square + q[2 * i];
        odd = odd * square + q[2 * i + 1];
    }
    v->h = sums[0] + t * sums[1];
    v->curvature = sums[2] + t * sums[3];
    v->value = even + t * odd;
}

INLINE Values loss_on(const Loss *loss, const double *cell, double s, int with_loss)
{
    Values v;
    if (loss->pairs == CURVED) /* as a constant, so that loops are unrolled */
        polynomials(cell, CURVED, s, with_loss, &v);
    else
        polynomials(cell, (int)loss->pairs, s, with_loss, &v);
    return v;
}

INLINE Values loss_at(const Loss *loss, double s, int with_loss)
{
    return loss_on(loss, cell_of(loss, s), s, with_loss);
}

/* ------------------------------------------------------------------ roots */

/* As in numerics/roots.py, where the search is explained: a bracket that must shrink. */
INLINE int64_t ordinal(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

INLINE uint64_t numbers(double low, double high)
{
    return (uint64_t)ordinal(high) - (uint64_t)ordinal(low);
}

INLINE double halfway(double low, double high)
{
    int64_t a = ordinal(low), b = ordinal(high), middle = (a & b) + ((a ^ b) >> 1);
    if (middle < 0)
        middle = INT64_MIN - middle;
    double x;
    memcpy(&x, &middle, sizeof x);
    return x;
}

INLINE double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The s in [low, high] with s + V loss'(s) = u, from a guess. */
INLINE double root(const Loss *loss, double u, double V, double low, double high, double s,
                   double tolerance)
{
    const Settings *set = loss->settings;
    double close = fmax(tolerance, DBL_EPSILON * fabs(u));
    s = clip(s, low, high);
    uint64_t width = numbers(low, high);
    int seen_low = 0, seen_high = 0;
    for (int turn = 1; high > low; turn++) {
        Values at = loss_at(loss, s, 0);
        double gap = u - s, push = V * at.h, bend = V * at.curvature;
        double value = push - gap, slope = 1.0 + bend;
        if (bend > 1.0) { /* where loss' decays exponentially its logarithm is straight */
            double ratio = push / gap, line = (ratio - 1.0) / log(ratio) * (1.0 + bend / ratio);
            slope = line > 0.0 ? line : slope;
        }
        if (isnan(value))
            return NAN;
        if (value < 0.0)
            low = s, seen_low = 1;
        else
            high = s, seen_high = 1;
        uint64_t left = numbers(low, high);
        int judged = turn % set->patience == 0, wide = judged && left > width / 2;
        width = judged ? left : width;
        double step = value / slope, straight = s - step;
        if (fabs(value) <= close || left <= (uint64_t)set->close)
            return straight >= low && straight <= high ? straight : s;
        double beyond = copysign(0.5 * set->close * (nextafter(fabs(s), INFINITY) - fabs(s)), value);
        double trial = clip(straight - (wide ? step + beyond : beyond), low, high);
        int known = (trial == low && seen_low) || (trial == high && seen_high);
        if ((wide && turn % (2 * set->patience) == 0) || known || isnan(trial)) {
            double mean = 0.5 * low + 0.5 * high;
            trial = turn % 3 && isfinite(mean) ? mean : halfway(low, high);
        }
        s = trial;
    }
    return s;
}

/* ------------------------------------------------------------------ one point and its nodes */

typedef struct {
    const double *weight, *threshold, *variance; /* thresholds along the label */
    ptrdiff_t terms;
    double constant[3]; /* of Z, Z' and Z'' */
    const double *cells, *polynomials; /* of each cell: right end, middle, 1/half its width */
    ptrdiff_t count;
} Law;

typedef struct {
    const double *x, *w;
    ptrdiff_t nodes;
} Rule;

typedef struct {
    double V, mean, deviation, slope;
    double *zeta, *s; /* cuts in increasing order, as (u - mean)/deviation and as s */
    ptrdiff_t cuts;
    double *enter, *leave; /* where u enters and leaves each knot, as zeta */
    ptrdiff_t piece;      /* between which knots the last cut was found */
    int lost;              /* whether a cut was not found */
} Point;

/* Nodes that wait to be summed, and the sums so far. */
typedef struct {
    const Law *law;
    const double *polynomials; /* of the point's own law, if it has cells */
    double slope, V0;
    double xi[CAPACITY], h[CAPACITY], mass[CAPACITY], bend[CAPACITY], loss[CAPACITY];
    double sums[SUMS][LANES];
    ptrdiff_t count;
} Nodes;

/* The law of the waiting nodes, on its cells; NaN beyond them. */
INLINE void law_on_cells(const Nodes *n, ptrdiff_t count, double *Z, double *Z1, double *Z2)
{
    const double *cell = n->law->cells;
    ptrdiff_t c = 0, last = n->law->count - 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        double x = n->slope * n->xi[i], sums[OF_A_POWER] = {0.0, 0.0, 0.0, 0.0};
        while (c < last && x > cell[3 * c]) /* nodes stand in order, almost */
            c++;
        while (c > 0 && x <= cell[3 * c - 3])
            c--;
        const double *p = n->polynomials + c * POWERS * OF_A_POWER;
        double t = (x - cell[3 * c + 1]) * cell[3 * c + 2];
        for (int j = POWERS - 1; j >= 0; j--)
            for (int l = 0; l < OF_A_POWER; l++)
                sums[l] = sums[l] * t + p[OF_A_POWER * j + l];
        Z[i] = fabs(t) <= 1.0 + 1e-9 ? sums[0] : NAN;
        Z1[i] = sums[1];
        Z2[i] = sums[2];
    }
}

/* Add the waiting nodes to the sums. */
FOR_EACH_MACHINE static void add_up(Nodes *n)
{
    const Law *law = n->law;
    double Z[CAPACITY], Z1[CAPACITY], Z2[CAPACITY];
    for (; n->count % LANES; n->count++) {
        ptrdiff_t i = n->count;
        n->xi[i] = n->h[i] = n->mass[i] = n->bend[i] = n->loss[i] = 0.0;
    }
    ptrdiff_t blocks = n->count / LANES;
    for (ptrdiff_t i = 0; i < blocks * LANES; i++) {
        double phi = density(n->xi[i]);
        n->mass[i] *= phi;
        n->bend[i] *= phi;
        Z[i] = law->constant[0];
        Z1[i] = law->constant[1];
        Z2[i] = law->constant[2];
    }
    for (ptrdiff_t j = 0; j < law->terms; j++) {
        double inverse = 1.0 / sqrt(n->V0 + law->variance[j]), weight = law->weight[j];
        double threshold = law->threshold[j], steep = weight * inverse, slope = n->slope;
        for (ptrdiff_t i = 0; i < blocks * LANES; i++) {
            double t = (slope * n->xi[i] - threshold) * inverse, phi = density(t);
            Z[i] += weight * cumulative(t, phi);
            Z1[i] += steep * phi;
            Z2[i] -= inverse * t * (steep * phi);
        }
    }
    if (law->count)
        law_on_cells(n, blocks * LANES, Z, Z1, Z2);
    for (ptrdiff_t block = 0; block < blocks; block++)
        for (ptrdiff_t l = 0; l < LANES; l++) {
            ptrdiff_t i = block * LANES + l;
            double x = n->xi[i], h = n->h[i], m = n->mass[i], b = n->bend[i];
            double mZ = m * Z[i], bZ = b * Z[i], bZ1 = b * Z1[i];
            n->sums[SUM_G][l] += bZ;
            n->sums[SUM_HH][l] += mZ * h * h;
            n->sums[SUM_H][l] += mZ * h;
            n->sums[SUM_LOSS][l] += mZ * n->loss[i];
            n->sums[SUM_NORM][l] += mZ;
            n->sums[GX][l] += bZ * x;
            n->sums[GXX][l] += bZ * x * x;
            n->sums[GH][l] += bZ * h;
            n->sums[GHX][l] += bZ * h * x;
            n->sums[GHH][l] += bZ * h * h;
            n->sums[SUM_H1][l] += m * Z1[i] * h;
            n->sums[G1][l] += bZ1;
            n->sums[G1X][l] += bZ1 * x;
            n->sums[G2][l] += b * Z2[i];
            n->sums[G1H][l] += bZ1 * h;
        }
    n->count = 0;
}

INLINE void begin(Nodes *n, const Law *law, ptrdiff_t row, double slope, double V0)
{
    n->law = law;
    n->polynomials = law->polynomials + row * law->count * POWERS * OF_A_POWER;
    n->slope = slope;
    n->V0 = V0;
    n->count = 0;
    memset(n->sums, 0, sizeof n->sums);
}

/* Room for so many nodes more. */
INLINE void make_room(Nodes *n, ptrdiff_t nodes)
{
    if (n->count + nodes > CAPACITY)
        add_up(n);
}

INLINE void add_node(Nodes *n, double xi, double h, double mass, double bend, double loss)
{
    ptrdiff_t i = n->count++;
    n->xi[i] = xi;
    n->h[i] = h;
    n->mass[i] = mass;
    n->bend[i] = bend;
    n->loss[i] = loss;
}

/* ------------------------------------------------------------------ cuts of the curve */

/* The proximal point of u. */
INLINE double proximal(const Loss *loss, double u, double V, double tolerance, ptrdiff_t *hint)
{
    ptrdiff_t piece = *hint, last = loss->knots;
    while (piece < last && loss->knot[piece] + V * loss->below[piece] <= u)
        piece++; /* the piece between knots piece - 1 and piece; loss' bounds the outer two */
    while (piece && !(loss->knot[piece - 1] + V * loss->below[piece - 1] <= u))
        piece--;
    *hint = piece;
    ptrdiff_t j = piece - 1;
    if (piece && loss->above[j] > loss->below[j] && u <= loss->knot[j] + V * loss->above[j])
        return loss->knot[j];
    double low = piece ? loss->knot[j] : u - V * loss->below[0];
    double high = piece < last ? loss->knot[piece] : u - V * loss->above[last - 1];
    if (!(high > low))
        return low;
    double guess = u;
    if (piece && piece < last) {
        double from = low + V * loss->above[j], to = high + V * loss->below[piece];
        guess = low + (high - low) * (u - from) / (to - from);
    }
    if (loss->scale > 0.0)
        return root(loss, u, V, low, high, guess, tolerance);
    const double *cell = cell_of(loss, 0.5 * (low + high)); /* a parabola */
    return clip(cell[1] + (u - cell[1] - V * cell[3]) / (1.0 + V * cell[5]), low, high);
}

/* Insert a number into sorted ones. */
INLINE void insert(double *sorted, ptrdiff_t count, double x)
{
    for (; count > 0 && sorted[count - 1] > x; count--)
        sorted[count] = sorted[count - 1];
    sorted[count] = x;
}

/* Insert a cut: both grow along the curve, so that each in order is in order with the other. */
INLINE void cut(Point *p, double zeta, double s)
{
    insert(p->zeta, p->cuts, zeta);
    insert(p->s, p->cuts, s);
    p->cuts++;
}

/* Where u of a proximal point stands, in standard deviations. */
INLINE double place(const Point *p, const Loss *loss, double s)
{
    return (s - p->mean + p->V * loss_at(loss, s, 0).h) / p->deviation;
}

/* Cut at a place given in standard deviations, or a little aside. */
INLINE void cut_at(Point *p, const Loss *loss, double zeta, double aside)
{
    double u = p->mean + p->deviation * zeta;
    double s = proximal(loss, u, p->V, aside * p->deviation, &p->piece);
    if (loss->scale > 0.0) { /* s and zeta must belong together */
        double there = place(p, loss, s);
        if (fabs(there - zeta) > aside) { /* the last step of a search may lead away */
            s = proximal(loss, u, p->V, 0.0, &p->piece);
            there = place(p, loss, s);
        }
        zeta = clip(there, zeta - aside, zeta + aside);
    }
    p->lost |= isnan(s);
    cut(p, zeta, s);
}

/* Cut the curve at the fan, where the label law bends, and at the knots of the loss. */
INLINE void cut_curve(Point *p, const Loss *loss, const double *marks, ptrdiff_t count)
{
    const Settings *set = loss->settings;
    p->cuts = 0;
    for (ptrdiff_t i = 0; i < set->fanned; i++)
        cut_at(p, loss, set->fan[i], set->aside);
    double first = p->zeta[0], last = p->zeta[set->fanned - 1];
    double low = INFINITY, high = -INFINITY, gap = 1.0;
    for (ptrdiff_t i = 0; i < count; i++) {
        low = fmin(low, -marks[i] / p->slope);
        high = fmax(high, -marks[i] / p->slope);
        if (i)
            gap = fmin(gap, fabs((marks[i] - marks[i - 1]) / p->slope));
    }
    if (high - low < 2.0 * set->reach) /* else the law bends no more than the Gaussian does */
        for (ptrdiff_t i = 0; i < count; i++)
            if (fabs(marks[i] / p->slope) < set->reach)
                cut_at(p, loss, -marks[i] / p->slope, set->aside * gap);
    for (ptrdiff_t i = 0; i < loss->knots; i++) {
        double V = p->V, knot = loss->knot[i], inverse = 1.0 / p->deviation;
        double enter = p->enter[i] = (knot + V * loss->below[i] - p->mean) * inverse;
        double leave = p->leave[i] = (knot + V * loss->above[i] - p->mean) * inverse;
        int needed = loss->scale == 0.0 || loss->kink[i] || !((1.0 + V) * loss->bend[i] < set->flat);
        if (needed && enter > first && enter < last)
            cut(p, enter, knot);
        if (loss->above[i] > loss->below[i] && leave > first && leave < last)
            cut(p, leave, knot);
    }
}

/* ------------------------------------------------------------------ panels between the cuts */

/* The kink on which s stands still along a panel, or -1. */
INLINE ptrdiff_t kink_of(const Point *p, const Loss *loss, double middle)
{
    for (ptrdiff_t i = 0; loss->jumps && i < loss->knots; i++)
        if (loss->above[i] > loss->below[i] && p->enter[i] < middle && middle < p->leave[i])
            return i;
    return -1;
}

/* A panel on a kink, where u runs while s stands still: g = 1/V. */
INLINE void panel_on_kink(Nodes *n, const Point *p, const Loss *loss, const Rule *rule,
                          ptrdiff_t at, ptrdiff_t kink)
{
    double V = p->V, start = p->zeta[at], width = p->zeta[at + 1] - start;
    double knot = loss->knot[kink], below = loss->below[kink], jump = loss->above[kink] - below;
    double value = loss_at(loss, knot, 1).value, from = (p->mean - knot) / V, per = p->deviation / V;
    if (!(V * jump > loss->settings->point * p->deviation))
        return; /* see point_mass */
    /* a kink that no cut divides: its width is known exactly, however narrow it is */
    int whole = width >= (1.0 - 1e-9) * (p->leave[kink] - p->enter[kink]);
    double mass = whole ? V * jump / p->deviation : width, bend = mass / V;
    for (ptrdiff_t i = 0; i < rule->nodes; i++) {
        double x = rule->x[i], zeta = start + width * x;
        double h = whole ? below + jump * x : from + per * zeta;
        add_node(n, -zeta, h, mass * rule->w[i], bend * rule->w[i], value);
    }
}

/* A kink too narrow for a panel: u stands still as well, yet h crosses its jump. */
INLINE void point_mass(Nodes *n, const Point *p, const Loss *loss, const Rule *rule, ptrdiff_t k)
{
    double jump = loss->above[k] - loss->below[k], width = p->V * jump / p->deviation;
    const Settings *set = loss->settings;
    if (!(width > 0.0 && width <= set->point && fabs(p->enter[k]) < set->reach))
        return;
    double value = loss_at(loss, loss->knot[k], 1).value;
    for (ptrdiff_t i = 0; i < rule->nodes; i++)
        add_node(n, -p->enter[k], loss->below[k] + jump * rule->x[i], width * rule->w[i],
                 jump / p->deviation * rule->w[i], value);
}

/* A panel between kinks that runs over s: du = (1 + V loss'') ds. In three loops, so that the first
   and the last are over vectors. */
INLINE void panel_over_s(Nodes *n, const Point *p, const Loss *loss, const Rule *rule,
                         ptrdiff_t at, int with_loss)
{
    double V = p->V, first = p->s[at], length = p->s[at + 1] - first;
    double inverse = 1.0 / p->deviation, step = length / p->deviation;
    double s[TOGETHER], bin[TOGETHER], h[TOGETHER], curvature[TOGETHER], *value = n->loss + n->count;
    for (ptrdiff_t i = 0; i < rule->nodes; i++)
        s[i] = first + length * rule->x[i], bin[i] = bin_of(loss, s[i]);
    for (ptrdiff_t i = 0; i < rule->nodes; i++) {
        Values v = loss_on(loss, cell_in(loss, bin[i], s[i]), s[i], with_loss);
        h[i] = v.h;
        curvature[i] = v.curvature;
        value[i] = v.value;
    }
    double *xi = n->xi + n->count, *response = n->h + n->count;
    double *mass = n->mass + n->count, *bend = n->bend + n->count;
    for (ptrdiff_t i = 0; i < rule->nodes; i++) {
        double part = step * rule->w[i];
        xi[i] = (p->mean - s[i] - V * h[i]) * inverse;
        response[i] = h[i];
        bend[i] = part * curvature[i];
        mass[i] = part + V * (part * curvature[i]);
    }
    n->count += rule->nodes;
}

/* A panel that runs over u because s hardly moves: u - mean would lose its digits. Newton's method
   from the line between the ends is over soon. */
INLINE void panel_over_u(Nodes *n, const Point *p, const Loss *loss, const Rule *rule,
                         ptrdiff_t at)
{
    double V = p->V, start = p->zeta[at], width = p->zeta[at + 1] - start;
    double first = p->s[at], length = p->s[at + 1] - first;
    double low = first + length * rule->x[0], high = first + length * rule->x[rule->nodes - 1];
    double margin = fabs(high - low) + 1e-15 * fabs(high); /* the ends are known to rounding */
    for (ptrdiff_t i = 0; i < rule->nodes; i++) {
        double zeta = start + width * rule->x[i], u = p->mean + p->deviation * zeta;
        double guess = first + length * rule->x[i], s = guess, close = 4.0 * DBL_EPSILON * fabs(u);
        Values v = loss_at(loss, s, 1);
        double value = V * v.h - (u - s);
        for (int turn = 0; turn < 2 && fabs(value) > close; turn++) {
            s -= value / (1.0 + V * v.curvature);
            v = loss_at(loss, s, 1);
            value = V * v.h - (u - s);
        }
        if (!(fabs(value) <= close)) {
            s = root(loss, u, V, low - margin, high + margin, guess, 0.0);
            v = loss_at(loss, s, 1);
        }
        double mass = width * rule->w[i], bend = mass * v.curvature / (1.0 + V * v.curvature);
        add_node(n, -zeta, v.h, mass, bend, v.value);
    }
}

/* A panel on which the loss is a parabola: s is linear in u. */
INLINE void panel_of_parabola(Nodes *n, const Point *p, const Loss *loss, const Rule *rule,
                              ptrdiff_t at)
{
    double start = p->zeta[at], width = p->zeta[at + 1] - start;
    double first = p->s[at], length = p->s[at + 1] - first;
    const double *cell = cell_of(loss, first + 0.5 * length), *q = cell + 3 + 4 * loss->pairs;
    double stretch = (1.0 + p->V * cell[5]) / p->deviation;
    if (width < loss->settings->slender && fabs(first) * stretch < fabs(start) && length > 0.0)
        width = length * stretch; /* s is more exact */
    double bend = width * cell[5] / (1.0 + p->V * cell[5]);
    for (ptrdiff_t i = 0; i < rule->nodes; i++) {
        double t = (first + length * rule->x[i] - cell[1]) * cell[2];
        add_node(n, -(start + width * rule->x[i]), cell[3] + t * cell[4], width * rule->w[i],
                 bend * rule->w[i], q[0] + t * (q[1] + t * q[2]));
    }
}

/* Nodes along the proximal curve. */
INLINE void nodes_of(Nodes *n, const Point *p, const Loss *loss, const Rule *rule, int with_loss)
{
    const Settings *set = loss->settings;
    for (ptrdiff_t at = 0; at + 1 < p->cuts; at++) {
        double width = p->zeta[at + 1] - p->zeta[at], length = p->s[at + 1] - p->s[at];
        if (!(width > set->narrowest * fabs(p->zeta[at + 1]) || length > 0.0))
            continue;
        ptrdiff_t kink = kink_of(p, loss, p->zeta[at] + 0.5 * width);
        make_room(n, rule->nodes);
        if (kink >= 0)
            panel_on_kink(n, p, loss, rule, at, kink);
        else if (loss->scale == 0.0)
            panel_of_parabola(n, p, loss, rule, at);
        else if (length < set->narrow * loss->scale)
            panel_over_u(n, p, loss, rule, at);
        else if (with_loss)
            panel_over_s(n, p, loss, rule, at, 1);
        else
            panel_over_s(n, p, loss, rule, at, 0);
    }
    for (ptrdiff_t k = 0; loss->jumps && k < loss->knots; k++) {
        make_room(n, rule->nodes);
        point_mass(n, p, loss, rule, k);
    }
}

/* The sums of all nodes. */
static void total(Nodes *n, double *out)
{
    add_up(n);
    for (int j = 0; j < SUMS; j++) {
        out[j] = 0.0;
        for (int l = 0; l < LANES; l++)
            out[j] += n->sums[j][l];
    }
}

/* The averages and their derivatives at one point, as in averages.py. */
INLINE void assemble(const Point *p, const double *sum, double y, double beta, double *e, double *de)
{
    double V = p->V, sd = p->deviation, slope = p->slope;
    double of[AVERAGES] = {
        [AVERAGE_e1] = sum[SUM_G],
        [AVERAGE_e2] = sum[SUM_HH],
        [AVERAGE_e3] = sum[SUM_H1],
        [AVERAGE_e0] = y * sum[SUM_H],
    };
    double by_V[AVERAGES] = {
        [AVERAGE_e1] = (sum[GHX] - slope * sum[G1H]) / sd,
        [AVERAGE_e2] = -2.0 * sum[GHH],
        [AVERAGE_e3] = -sum[G1H],
        [AVERAGE_e0] = -y * sum[GH],
    };
    double by_Q[AVERAGES] = {
        [AVERAGE_e1] = sum[GXX] - sum[SUM_G] - slope * sum[G1X],
        [AVERAGE_e2] = -2.0 * sd * sum[GHX],
        [AVERAGE_e3] = -sd * sum[G1X],
        [AVERAGE_e0] = -y * sd * sum[GX],
    };
    double by_tilt[AVERAGES] = {
        [AVERAGE_e1] = sum[G1X] - slope * sum[G2],
        [AVERAGE_e2] = -2.0 * sd * sum[G1H],
        [AVERAGE_e3] = -sd * sum[G2],
        [AVERAGE_e0] = -y * sd * sum[G1],
    };
    double by_beta[AVERAGES] = {
        [AVERAGE_e1] = y * (sum[GX] - slope * sum[G1]),
        [AVERAGE_e2] = -2.0 * y * sd * sum[GH],
        [AVERAGE_e3] = -y * sd * sum[G1],
        [AVERAGE_e0] = -sd * sum[SUM_G],
    };
    for (int i = 0; i < AVERAGES; i++) {
        double *by = de + i * UNKNOWNS;
        e[i] = of[i];
        by[BY_log_V] = V * by_V[i];
        by[BY_log_Q] = 0.5 * by_Q[i] + 0.5 * beta * by_beta[i];
        by[BY_tilt] = by_tilt[i];
        by[BY_beta] = by_beta[i];
    }
}

#endif
