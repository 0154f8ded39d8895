/** The words of both languages, for completion without a kernel. A test compares them with `ide.keywords()`. */
import type { LanguageName } from './language.js';

export interface Vocabulary {
  readonly keywords: readonly string[];
  readonly constants: readonly string[];
  readonly types: readonly string[];
  readonly reductions: readonly string[];
  readonly functions: readonly string[];
}

const words = (text: string): readonly string[] => text.split(' ');

const one =
  'acos acosh asin asinh atan atanh cos cosh cospi sin sinh sinpi tan tanh exp exp2 exp10 expm1 log log2 log10 log1p logb ' +
  'sqrt rsqrt cbrt rcbrt erf erfc erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma digamma j0 j1 y0 y1 cyl_bessel_i0 ' +
  'cyl_bessel_i1 fabs ceil floor round rounded trunc sigmoid relu isnan isinf isfinite abs sign popcount';
const more =
  'atan2 copysign fdim fdivide fmax fmin fmod hypot nextafter polygamma pow remainder rhypot fma norm3d rnorm3d norm4d rnorm4d';

const scalars =
  'bool int8 int16 int32 int64 int uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 float double';

export const vocabularies: Readonly<Record<LanguageName, Vocabulary>> = {
  tc: {
    keywords: words('def reduce where in exists else unique const'),
    constants: words('true false inf nan'),
    types: words(`${scalars} complex64 complex128 half byte`),
    reductions: words('min max'),
    functions: words(`${one} ${more} clamp wrap reflect symmetric uniform normal conj re im`)
  },
  sac: {
    keywords: words('return with genarray modarray fold if else for while do inline typedef use import step width'),
    constants: words('true false inf nan'),
    types: words(`${scalars} long`),
    reductions: words('min max'),
    functions: words(
      `${one} ${more} shape dim take drop sel sum prod minval maxval reverse transpose genarray reshape iota tile where rotate shift all any mod tof toi tod`
    )
  }
};
