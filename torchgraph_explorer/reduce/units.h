/* The largest and the smallest value of each unit of an output: what `UnitRows` in `capture/facts/units.py` asks torch for,
 * of floats that are in order in memory. The numbers below are those of that file.
 */

#ifndef TORCHGRAPH_UNITS
#define TORCHGRAPH_UNITS

#include <math.h>
#include <string.h>

#include "described_tensor.h"

enum { MOST_UNITS = 1 << 14, MOST_POSITIONS = 1 << 15, LEAST_POSITIONS = 32, MOST_DIMENSIONS = 8 };

/* The positions at which a unit has a value, in order of the dimensions without that of the units; of each dimension, `step`
 * is how far apart in memory those are that are looked at. */
typedef struct {
    const float *data;
    int64_t units, apart, size[MOST_DIMENSIONS], step[MOST_DIMENSIONS];
    int dimensions;
} Output;

/* As `_few_positions`: looks at less of some dimensions. */
static void take_few(Output *output) {
    int64_t most = MOST_POSITIONS / output->units, count = 1;
    if (most < LEAST_POSITIONS) most = LEAST_POSITIONS;
    for (int at = 0; at < output->dimensions; at++) count *= output->size[at];
    for (int left = output->dimensions; left > 0; left--) {
        int at = left == 1 ? 0 : left - 1; /* samples last */
        int64_t excess = (count + most - 1) / most, size = output->size[at];
        if (excess <= 1) continue;
        int64_t stride = excess < size ? excess : size;
        output->size[at] = (size + stride - 1) / stride;
        output->step[at] *= stride;
        count = count / size * output->size[at];
    }
}

/* Describes a tensor with units along its second or its last dimension. Returns 1; 0 if it is not to be looked at. */
static int output_of(const Described *tensor, int is_second, Output *output) {
    int last = tensor->dimensions - 1, of_units = is_second ? 1 : last;
    if (last < 1 || last >= MOST_DIMENSIONS || described_type(tensor) != 0 || tensor->shape[0] < 2) return 0;
    if (tensor->shape[1] > MOST_UNITS || tensor->shape[last] > MOST_UNITS) return 0;
    output->data = (const float *)(tensor->data + tensor->offset);
    output->dimensions = 0;
    int64_t step = 1;
    for (int at = last; at >= 0; step *= tensor->shape[at--]) {
        if (at == of_units) {
            output->units = tensor->shape[at];
            output->apart = step;
            continue;
        }
        int place = at < of_units ? at : at - 1;
        output->size[place] = tensor->shape[at];
        output->step[place] = step;
        output->dimensions++;
    }
    take_few(output);
    return 1;
}

/* The next position, as a distance in memory from the first one; -1 behind the last one. */
static int64_t next_position(const Output *output, int64_t *place, int64_t position) {
    for (int at = output->dimensions - 1; at >= 0; at--) {
        position += output->step[at];
        if (++place[at] < output->size[at]) return position;
        position -= place[at] * output->step[at];
        place[at] = 0;
    }
    return -1;
}

/* NaN if one of them is. */
static inline float higher(float one, float other) { return one != one || one > other ? one : other; }
static inline float lower(float one, float other) { return one != one || one < other ? one : other; }

static void find_extremes(const Output *output, float *high, float *low) {
    int64_t place[MOST_DIMENSIONS] = {0}, apart = output->apart;
    for (int64_t unit = 0; unit < output->units; unit++) high[unit] = low[unit] = output->data[unit * apart];
    for (int64_t position = 0; (position = next_position(output, place, position)) >= 0;) {
        const float *values = output->data + position;
        if (apart == 1)
            for (int64_t unit = 0; unit < output->units; unit++) {
                high[unit] = higher(high[unit], values[unit]);
                low[unit] = lower(low[unit], values[unit]);
            }
        else
            for (int64_t unit = 0; unit < output->units; unit++) {
                high[unit] = higher(high[unit], values[unit * apart]);
                low[unit] = lower(low[unit], values[unit * apart]);
            }
    }
}

/* Puts the largest magnitude of each unit into `peaks`, with those that are there unless `is_new`, and how far its values are
 * apart into `low`. */
static void add_extremes(int64_t units, const float *high, float *low, float *peaks, int is_new) {
    for (int64_t unit = 0; unit < units; unit++) {
        float peak = higher(fabsf(high[unit]), fabsf(low[unit]));
        peaks[unit] = is_new ? peak : higher(peaks[unit], peak);
        low[unit] = fabsf(high[unit] - low[unit]);
    }
}

#endif
