/* The compiled extension: averages along the proximal curve for all points of a call, and the steps of
   Newton's method on small systems.

   All state is on the stack or belongs to the call, so that calls run on any number of threads; the
   long ones release the interpreter. Sums have LANES partial sums whatever the instruction set, so
   that only fused multiply-adds distinguish one machine from another. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "proximal_curve.h"

/* ------------------------------------------------------------------ all points of a call */

typedef struct {
    Loss loss;
    Law law;
    Rule rule;
    Py_ssize_t rows, columns;
    const double *field, *edges; /* edges: marks of the label law, or of panels */
    double *out, y;
    int with_loss;
} Call;

/* The averages of each point along its proximal curve. */
FOR_EACH_MACHINE static void averages(const Call *c, double *work)
{
    Loss loss = c->loss;
    Nodes n;
    double sums[SUMS];
    for (Py_ssize_t row = 0; row < c->rows; row++) {
        const double *f = c->field + row;
        Py_ssize_t most = FANNED + c->columns + 2 * loss.knots;
        Point p = {.V = f[0],
                   .mean = f[c->rows],
                   .deviation = f[2 * c->rows],
                   .k = f[3 * c->rows],
                   .zeta = work,
                   .s = work + most,
                   .enter = work + 2 * most,
                   .leave = work + 2 * most + loss.knots};
        cut_curve(&p, &loss, c->edges + row * c->columns, c->columns);
        begin(&n, &c->law, row, f[3 * c->rows], f[4 * c->rows]);
        for (Py_ssize_t i = 0; i < c->rule.nodes; i += TOGETHER) {
            Py_ssize_t left = c->rule.nodes - i;
            Rule part = {c->rule.x + i, c->rule.w + i, left < TOGETHER ? left : TOGETHER};
            nodes_of(&n, &p, &loss, &part, c->with_loss);
        }
        total(&n, sums);
        if (p.lost)
            sums[E1] = NAN;
        assemble(&p, sums, c->y, f[5 * c->rows], c->out + row * AVERAGES);
    }
}

/* E[Z] of each point over its own panels; the field is (k, V0). */
FOR_EACH_MACHINE static void shares(const Call *c)
{
    Nodes n;
    for (Py_ssize_t row = 0; row < c->rows; row++) {
        const double *edge = c->edges + row * c->columns;
        double sums[SUMS];
        begin(&n, &c->law, row, c->field[row], c->field[c->rows + row]);
        for (Py_ssize_t i = 0; i + 1 < c->columns; i++) {
            double width = edge[i + 1] - edge[i];
            for (Py_ssize_t j = 0; width > 0.0 && j < c->rule.nodes; j++) {
                make_room(&n, 1);
                add_node(&n, edge[i] + width * c->rule.x[j], 0.0, width * c->rule.w[j], 0.0, 0.0);
            }
        }
        total(&n, sums);
        c->out[row] = sums[NORM];
    }
}

FOR_EACH_MACHINE static void normal_law(const double *t, Py_ssize_t count, double *out)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        double phi = density(t[i]);
        out[i] = phi;
        out[count + i] = cumulative(t[i], phi);
    }
}

static int all_finite(const double *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

static void swap(double *a, double *b)
{
    double was = *a;
    *a = *b;
    *b = was;
}

/* Gaussian elimination with pivots, in place; false if the matrix is singular. */
static int solved(double *a, double *x, int n)
{
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int j = i + 1; j < n; j++)
            if (fabs(a[j * n + i]) > fabs(a[pivot * n + i]))
                pivot = j;
        if (a[pivot * n + i] == 0.0)
            return 0;
        for (int j = i; j < n; j++)
            swap(&a[i * n + j], &a[pivot * n + j]);
        swap(&x[i], &x[pivot]);
        for (int j = i + 1; j < n; j++) {
            double factor = a[j * n + i] / a[i * n + i];
            for (int l = i + 1; l < n; l++)
                a[j * n + l] -= factor * a[i * n + l];
            x[j] -= factor * x[i];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++)
            x[i] -= a[i * n + j] * x[j];
        x[i] /= a[i * n + i];
    }
    return 1;
}

/* ------------------------------------------------------------------ Python */

enum { MOST_ARRAYS = 11, LARGEST = 8 };

/* Arrays of doubles of two dimensions, held while a function works on them. */
typedef struct {
    Py_buffer view[MOST_ARRAYS];
    int count;
} Arrays;

static PyObject *done(Arrays *a, PyObject *result)
{
    while (a->count)
        PyBuffer_Release(&a->view[--a->count]);
    return result;
}

/* Hold so many arguments, the first of which is written to. */
static int hold(Arrays *a, PyObject *args, int count)
{
    a->count = 0;
    if (PyTuple_GET_SIZE(args) != count) {
        PyErr_Format(PyExc_TypeError, "expected %d arrays", count);
        return 0;
    }
    while (a->count < count) {
        int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (a->count ? 0 : PyBUF_WRITABLE);
        Py_buffer *view = &a->view[a->count];
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(args, a->count), view, flags) < 0)
            return 0;
        a->count++;
        if (view->ndim != 2 || strcmp(view->format, "d")) {
            PyErr_Format(PyExc_ValueError, "array %d is not one of doubles (m, n)", a->count);
            return 0;
        }
    }
    return 1;
}

/* Whether an array has a shape; -1 stands for any length. */
static int fits(const Arrays *a, int which, Py_ssize_t rows, Py_ssize_t columns)
{
    const Py_ssize_t *shape = a->view[which].shape;
    if ((rows < 0 || shape[0] == rows) && (columns < 0 || shape[1] == columns))
        return 1;
    PyErr_Format(PyExc_ValueError, "array %d has the shape (%zd, %zd)", which + 1, shape[0],
                 shape[1]);
    return 0;
}

static double *data(const Arrays *a, int which) { return a->view[which].buf; }

/* What all calls share: (out, field, edges, law, rule, cells and polynomials of the law), and some
   numbers, the first the offset. */
static int fit_to_call(const Arrays *a)
{
    Py_ssize_t cells = a->view[5].shape[0], rows = cells ? a->view[2].shape[0] : -1;
    return fits(a, 3, 3, -1) && fits(a, 4, 2, -1) && fits(a, 5, -1, 3) &&
           fits(a, 6, rows, cells * POWERS * OF_A_POWER);
}

static Call call_of(const Arrays *a, int numbers)
{
    const double *law = data(a, 3), *rule = data(a, 4);
    Py_ssize_t terms = a->view[3].shape[1], nodes = a->view[4].shape[1];
    Law form = {.weight = law,
                .threshold = law + terms,
                .variance = law + 2 * terms,
                .terms = terms,
                .offset = data(a, numbers)[0],
                .cells = data(a, 5),
                .polynomials = data(a, 6),
                .count = a->view[5].shape[0]};
    return (Call){.out = data(a, 0),
                  .field = data(a, 1),
                  .edges = data(a, 2),
                  .rows = a->view[2].shape[0],
                  .columns = a->view[2].shape[1],
                  .law = form,
                  .rule = {rule, rule + nodes, nodes}};
}

/* (out, field, marks, law, rule, its cells, their polynomials, knots, cells, first, numbers) */
static PyObject *python_averages(PyObject *self, PyObject *args)
{
    Arrays a;
    if (!hold(&a, args, 11))
        return done(&a, NULL);
    Py_ssize_t rows = a.view[2].shape[0], n = a.view[7].shape[1], stride = a.view[8].shape[1];
    if (!(fits(&a, 0, rows, AVERAGES) && fits(&a, 1, 6, rows) && fit_to_call(&a) &&
          fits(&a, 7, 5, -1) && fits(&a, 8, -1, stride < 15 ? 15 : stride) && fits(&a, 9, -1, 1) &&
          fits(&a, 10, 1, 6)))
        return done(&a, NULL);
    const double *knot = data(&a, 7), *numbers = data(&a, 10);
    Call c = call_of(&a, 10);
    c.loss = (Loss){.knot = knot,
                    .below = knot + n,
                    .above = knot + 2 * n,
                    .bend = knot + 3 * n,
                    .kink = knot + 4 * n,
                    .knots = n,
                    .cells = data(&a, 8),
                    .stride = stride,
                    .pairs = (stride - 3) / 6,
                    .first = data(&a, 9),
                    .bins = a.view[9].shape[0],
                    .low = numbers[1],
                    .per_bin = numbers[2],
                    .scale = numbers[3]};
    c.y = numbers[4];
    c.with_loss = numbers[5] != 0.0;
    for (Py_ssize_t i = 0; i < n; i++) {
        c.loss.kinks |= c.loss.kink[i] != 0.0;
        c.loss.jumps |= c.loss.above[i] > c.loss.below[i];
    }
    size_t cuts = (size_t)(FANNED + c.columns + 2 * n);
    double *work = PyMem_RawMalloc((2 * cuts + 2 * (size_t)n) * sizeof(double));
    if (!work)
        return done(&a, PyErr_NoMemory());
    Py_BEGIN_ALLOW_THREADS;
    averages(&c, work);
    Py_END_ALLOW_THREADS;
    PyMem_RawFree(work);
    return done(&a, Py_NewRef(Py_None));
}

/* (out, field, edges, law, rule, its cells, their polynomials, numbers) */
static PyObject *python_shares(PyObject *self, PyObject *args)
{
    Arrays a;
    if (!hold(&a, args, 8))
        return done(&a, NULL);
    Py_ssize_t rows = a.view[2].shape[0];
    if (!(fits(&a, 0, 1, rows) && fits(&a, 1, 2, rows) && fit_to_call(&a) && fits(&a, 7, 1, 1)))
        return done(&a, NULL);
    Call c = call_of(&a, 7);
    Py_BEGIN_ALLOW_THREADS;
    shares(&c);
    Py_END_ALLOW_THREADS;
    return done(&a, Py_NewRef(Py_None));
}

/* (out, matrix, residual): whether all matrices are regular. A step that is not finite, or whose
   matrix is not, is the residual. */
static PyObject *python_newton_step(PyObject *self, PyObject *args)
{
    Arrays a;
    if (!hold(&a, args, 3))
        return done(&a, NULL);
    Py_ssize_t rows = a.view[2].shape[0], n = a.view[2].shape[1];
    if (!(fits(&a, 2, rows, n < LARGEST ? n : LARGEST) && fits(&a, 0, rows, n) &&
          fits(&a, 1, rows, n * n)))
        return done(&a, NULL);
    size_t bytes = (size_t)n * sizeof(double);
    int regular = 1;
    for (Py_ssize_t row = 0; row < rows && regular; row++) {
        double *step = data(&a, 0) + row * n, matrix[LARGEST * LARGEST];
        const double *residual = data(&a, 2) + row * n;
        memcpy(matrix, data(&a, 1) + row * n * n, (size_t)n * bytes);
        memcpy(step, residual, bytes);
        if (all_finite(matrix, n * n))
            regular = solved(matrix, step, (int)n);
        if (!all_finite(step, n))
            memcpy(step, residual, bytes);
    }
    return done(&a, PyBool_FromLong(regular));
}

/* (out, t): density and distribution function, for the tests. */
static PyObject *python_normal(PyObject *self, PyObject *args)
{
    Arrays a;
    if (!hold(&a, args, 2))
        return done(&a, NULL);
    Py_ssize_t count = a.view[1].shape[1];
    if (!(fits(&a, 0, 2, count) && fits(&a, 1, 1, -1)))
        return done(&a, NULL);
    normal_law(data(&a, 1), count, data(&a, 0));
    return done(&a, Py_NewRef(Py_None));
}

static PyMethodDef methods[] = {
    {"averages", python_averages, METH_VARARGS, "Averages along the proximal curve of each point."},
    {"shares", python_shares, METH_VARARGS, "The probability of a label over each point's panels."},
    {"newton_step", python_newton_step, METH_VARARGS, "Solutions of small linear systems."},
    {"normal", python_normal, METH_VARARGS, "The normal density and distribution function."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_extension",
    .m_doc = "Averages along the proximal curve, compiled.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__extension(void) { return PyModuleDef_Init(&module); }
